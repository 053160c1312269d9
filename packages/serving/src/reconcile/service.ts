import {
  type Configuration,
  knative,
  knativeAnnotations,
  knativeLabels,
  type KService,
  type Route,
  type TrafficTarget,
} from "@spry/function";
import { controllerRef, deepEqual, getCondition, isControlledBy, type ObjectKey } from "@spry/kube";
import { servingKeys } from "../annotations.ts";
import { routesOf } from "../caches.ts";
import { LivingConditions } from "../conditions.ts";
import { nameConflict } from "./configuration.ts";
import {
  type Context,
  lastApplied,
  quoted,
  without,
  writeDesired,
  writeStatus,
} from "./context.ts";

const configurationsReady = "ConfigurationsReady";
const routesReady = "RoutesReady";

/** Service → Configuration and Route of its name (knative.dev/serving/pkg/reconciler/service). */
export function serviceReconciler(context: Context): (key: ObjectKey) => Promise<void> {
  const { client, caches, clock } = context;
  return async (key) => {
    const service = caches.services.get(key);
    if (!service || service.metadata.deletionTimestamp) return;
    const conditions = new LivingConditions(
      [configurationsReady, routesReady],
      service.status?.conditions,
      clock,
    );
    const fields = await reconcile(context, service, conditions);
    await writeStatus(client, knative.services, service, {
      ...service.status,
      ...fields,
      observedGeneration: service.metadata.generation ?? 0,
      conditions: conditions.list,
    });
  };
}

/** What the status takes over from the children. */
async function reconcile(
  context: Context,
  service: KService,
  conditions: LivingConditions,
): Promise<KService["status"]> {
  const configuration = await ensureConfiguration(context, service);
  if (!configuration) {
    const message = `There is an existing Configuration ${quoted(service.metadata.name ?? "")} that we do not own.`;
    conditions.markFalse(configurationsReady, "NotOwned", message);
    return {};
  }
  const status: KService["status"] = {};
  const ownName = configuration.spec.template.metadata?.name;
  if (configuration.metadata.generation !== configuration.status?.observedGeneration) {
    conditions.markUnknown(
      configurationsReady,
      "OutOfDate",
      "The Configuration is still working to reflect the latest desired specification.",
    );
    // A Route that names the new Revision must not be written before it is known whose it is.
    if (ownName) return status;
  } else {
    const { latestCreatedRevisionName, latestReadyRevisionName } = configuration.status ?? {};
    if (latestCreatedRevisionName) status.latestCreatedRevisionName = latestCreatedRevisionName;
    if (latestReadyRevisionName) status.latestReadyRevisionName = latestReadyRevisionName;
    takeOver(conditions, configurationsReady, configuration);
  }
  if (ownName && nameConflict(context, configuration)) {
    const message = `The revision name ${quoted(ownName)} is taken by a conflicting Revision, so traffic will not be migrated`;
    conditions.markFalse(routesReady, "RevisionNameTaken", message);
    return status;
  }
  const route = await ensureRoute(context, service);
  if (!route) {
    const message = `There is an existing Route ${quoted(service.metadata.name ?? "")} that we do not own.`;
    conditions.markFalse(routesReady, "NotOwned", message);
    return status;
  }
  if (route.metadata.generation !== route.status?.observedGeneration) {
    conditions.markUnknown(
      routesReady,
      "OutOfDate",
      "The Route is still working to reflect the latest desired specification.",
    );
    return status;
  }
  const { url, address, traffic } = route.status ?? {};
  takeOver(conditions, routesReady, route);
  if (conditions.isTrue(routesReady) && !isMigrated(route, configuration)) {
    conditions.markUnknown(
      routesReady,
      "TrafficNotMigrated",
      "Traffic is not yet migrated to the latest revision.",
    );
  }
  return {
    ...status,
    ...(url ? { url } : {}),
    ...(address ? { address } : {}),
    ...(traffic ? { traffic } : {}),
  };
}

function takeOver(conditions: LivingConditions, type: string, child: Configuration | Route): void {
  const ready = getCondition(child.status?.conditions, "Ready");
  if (!ready) return;
  const { status, reason, message } = ready;
  if (status === "True") conditions.markTrue(type);
  else conditions.mark(type, status, reason, message);
}

/** Whether requests go where the spec says, with the Configuration's newest Revision that is ready. */
function isMigrated({ spec, status }: Route, configuration: Configuration): boolean {
  const { name } = configuration.metadata;
  const latest = configuration.status?.latestReadyRevisionName;
  const plain = ({ tag = "", revisionName, percent = 0 }: TrafficTarget) => ({
    tag,
    revisionName,
    percent,
  });
  const desired = (spec.traffic ?? []).map((target) =>
    plain(target.configurationName === name ? { ...target, revisionName: latest ?? "" } : target),
  );
  return deepEqual(desired, (status?.traffic ?? []).map(plain));
}

/** Undefined if the name belongs to another one. */
async function ensureConfiguration(
  { client, caches }: Context,
  service: KService,
): Promise<Configuration | undefined> {
  const { namespace, name = "", labels, annotations } = service.metadata;
  const observed = caches.configurations.get(`${namespace}/${name}`);
  if (observed && !isControlledBy(observed, service)) return undefined;
  const routes = new Set([...(observed ? routesOf(observed) : []), name]);
  const desired: Configuration = {
    metadata: {
      name,
      namespace: namespace ?? "",
      labels: {
        ...labels,
        [knativeLabels.service]: name,
        [knativeLabels.serviceUid]: service.metadata.uid ?? "",
      },
      annotations: {
        ...without(annotations, [lastApplied, ...servingKeys.rolloutDuration]),
        [knativeAnnotations.routes]: [...routes].toSorted().join(","),
      },
      ownerReferences: [controllerRef(knative.services, service)],
    },
    spec: { template: service.spec.template },
  };
  return observed
    ? writeDesired(client, knative.configurations, observed, desired)
    : client.create(knative.configurations, desired);
}

async function ensureRoute(
  { client, caches }: Context,
  service: KService,
): Promise<Route | undefined> {
  const { namespace, name = "", labels, annotations } = service.metadata;
  const observed = caches.routes.get(`${namespace}/${name}`);
  if (observed && !isControlledBy(observed, service)) return undefined;
  const traffic = (service.spec.traffic ?? []).map((target) =>
    target.revisionName ? target : { ...target, configurationName: name },
  );
  const desired: Route = {
    metadata: {
      name,
      namespace: namespace ?? "",
      labels: { ...labels, [knativeLabels.service]: name },
      annotations: without(annotations, [lastApplied]),
      ownerReferences: [controllerRef(knative.services, service)],
    },
    spec: { traffic },
  };
  return observed
    ? writeDesired(client, knative.routes, observed, desired)
    : client.create(knative.routes, desired);
}
