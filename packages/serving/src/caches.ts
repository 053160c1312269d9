import {
  type DomainMapping,
  domainMappings,
  gatewaySliceManager,
  knative,
  knativeAnnotations,
  knativeLabels,
  type Route,
} from "@spry/function";
import {
  type Clock,
  Informer,
  type InformerOptions,
  type KubeClient,
  type KubeObject,
  type Logger,
  type Pod,
  type Resource,
  resources,
} from "@spry/kube";

/** What this room sees of the cluster. */
export interface Caches extends ReturnType<typeof createCaches> {}

export const serviceNameLabel = "kubernetes.io/service-name";
export const sliceManagerLabel = "endpointslice.kubernetes.io/managed-by";

/** Names of indexes. */
export const byConfiguration = "configuration";
export const byRoute = "route";
export const byRevision = "revision";
/** Routes, by the Configurations and Revisions that their specs name. */
export const byTarget = "target";

/** DomainMappings, by their names: several namespaces may have one of each. */
export const byHost = "host";
export const byReference = "reference";

const referenceOf = (mapping: DomainMapping) => [inNamespaceOf(mapping, mapping.spec.ref.name)];

const inNamespaceOf = (object: KubeObject, name: string) => `${object.metadata.namespace}/${name}`;

function byLabel(label: string) {
  return (object: KubeObject) => {
    const name = object.metadata.labels?.[label];
    return name ? [inNamespaceOf(object, name)] : [];
  };
}

/** The names in `serving.knative.dev/routes`. */
export function routesOf(object: KubeObject): string[] {
  const list = object.metadata.annotations?.[knativeAnnotations.routes] ?? "";
  return list.split(",").filter(Boolean);
}

const routeKeysOf = (object: KubeObject) =>
  routesOf(object).map((name) => inNamespaceOf(object, name));

export function createCaches(client: KubeClient, clock: Clock, log: Logger) {
  const informer = <T extends KubeObject>(
    resource: Resource<T>,
    options: InformerOptions<T> = {},
    // There are thousands of them, of which few are used at a time.
  ) => new Informer(client, resource, { clock, log, resting: !options.transform, ...options });
  const ofRevision = { labelSelector: knativeLabels.revision };
  return {
    services: informer(knative.services),
    configurations: informer(knative.configurations, { indexes: { [byRoute]: routeKeysOf } }),
    revisions: informer(knative.revisions, {
      indexes: { [byConfiguration]: byLabel(knativeLabels.configuration), [byRoute]: routeKeysOf },
    }),
    routes: informer(knative.routes, { indexes: { [byTarget]: targetsOf } }),
    domainMappings: informer(domainMappings, {
      indexes: { [byHost]: ({ metadata }) => [metadata.name ?? ""], [byReference]: referenceOf },
    }),
    deployments: informer(resources.deployments, ofRevision),
    pods: informer(resources.pods, {
      ...ofRevision,
      transform: whatMattersOf,
      indexes: { [byRevision]: byLabel(knativeLabels.revision) },
    }),
    /** All of them: a Function's own is among those that a Route serves. */
    coreServices: informer(resources.services, {
      indexes: { [byRoute]: byLabel(knativeLabels.route) },
    }),
    slices: informer(resources.endpointSlices, {
      labelSelector: `${sliceManagerLabel}=${gatewaySliceManager}`,
    }),
  };
}

function targetsOf(route: Route): string[] {
  const names = (route.spec.traffic ?? []).flatMap(({ configurationName, revisionName }) => [
    configurationName,
    revisionName,
  ]);
  return [...new Set(names)].flatMap((name) => (name ? [inNamespaceOf(route, name)] : []));
}

function whatMattersOf({ metadata, status }: Pod): Pod {
  return { metadata, ...(status ? { status } : {}) };
}
