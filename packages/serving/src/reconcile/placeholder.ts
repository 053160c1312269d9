import { knative, knativeLabels, type Route, type TrafficTarget } from "@spry/function";
import {
  controllerOf,
  controllerRef,
  isControlledBy,
  isNotFound,
  resources,
  type Service,
} from "@spry/kube";
import { byRoute } from "../caches.ts";
import { type Context, lastApplied, without } from "./context.ts";
import { serviceNamesOf } from "./traffic.ts";

/**
 * The Services of a Route and its tags: names, and addresses within the cluster. One that belongs to the Function which owns
 * the Knative Service is left to it. Returns the name of one that belongs to another owner.
 */
export async function ensurePlaceholders(
  context: Context,
  route: Route,
  targets: readonly TrafficTarget[],
): Promise<string | undefined> {
  const { client, caches } = context;
  const { namespace, name: routeName = "" } = route.metadata;
  const names = serviceNamesOf(route, targets);
  let foreign: string | undefined;
  for (const name of names) {
    const present = caches.coreServices.get(`${namespace}/${name}`);
    if (!present) await client.create(resources.services, desiredPlaceholder(route, name));
    else if (!isControlledBy(present, route) && !isAdopted(context, present, route))
      foreign ??= name;
  }
  for (const service of caches.coreServices.byIndex(byRoute, `${namespace}/${routeName}`)) {
    const { name = "", uid } = service.metadata;
    if (names.includes(name) || !isControlledBy(service, route)) continue;
    try {
      const preconditions = uid ? { preconditions: { uid } } : {};
      await client.delete(resources.services, { namespace, name }, preconditions);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  return foreign;
}

function desiredPlaceholder(route: Route, name: string): Service {
  const { namespace = "", name: routeName = "", labels, annotations } = route.metadata;
  return {
    metadata: {
      name,
      namespace,
      // Whether a tag can be called from outside is said on its own Service.
      labels: { ...without(labels, [knativeLabels.visibility]), [knativeLabels.route]: routeName },
      annotations: without(annotations, [lastApplied]),
      ownerReferences: [controllerRef(knative.routes, route)],
    },
    spec: { type: "ClusterIP", ports: [{ name: "http", port: 80, protocol: "TCP" }] },
  };
}

/** Whether the Service belongs to who owns the Knative Service that the Route belongs to. */
function isAdopted({ caches }: Context, service: Service, route: Route): boolean {
  const owner = controllerOf(route);
  if (owner?.kind !== knative.services.kind) return false;
  const kservice = caches.services.get(`${route.metadata.namespace}/${owner.name}`);
  const uid = kservice ? controllerOf(kservice)?.uid : undefined;
  return uid !== undefined && controllerOf(service)?.uid === uid;
}

/** The Route that a Service leads to, whether it is the Route's or adopted by it. */
export function routeOfService(context: Context, service: Service): Route | undefined {
  const { namespace, name = "", labels } = service.metadata;
  const { routes } = context.caches;
  const label = labels?.[knativeLabels.route];
  const own = label ? routes.get(`${namespace}/${label}`) : undefined;
  if (own && isControlledBy(service, own)) return own;
  const namesake = routes.get(`${namespace}/${name}`);
  return namesake && isAdopted(context, service, namesake) ? namesake : undefined;
}
