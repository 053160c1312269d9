import {
  type Clock,
  controllerOf,
  type EventRecorder,
  Informer,
  type InformerOptions,
  type KubeClient,
  type KubeObject,
  type Logger,
  type Resource,
  resources,
} from "@spry/kube";

/** What every controller of this room works with. */
export interface ControllerContext {
  client: KubeClient;
  caches: Caches;
  events: EventRecorder;
  clock: Clock;
  log: Logger;
}

export type Caches = ReturnType<typeof createCaches>;

/** Names of the indexes below. */
export const byController = "controller";
export const byNamespace = "namespace";
/** Objects without a controller, by namespace: mostly none, where there are thousands of others. */
export const orphansByNamespace = "orphans";
export const byService = "service";

/** One informer per kind, shared by all controllers: each object is held and decoded once. */
export function createCaches(client: KubeClient, clock: Clock, log: Logger) {
  const indexes = {
    [byController]: (object: KubeObject) => [controllerOf(object)?.uid ?? ""],
    [byNamespace]: (object: KubeObject) => [object.metadata.namespace ?? ""],
    [orphansByNamespace]: (object: KubeObject) =>
      controllerOf(object) ? [] : [object.metadata.namespace ?? ""],
  };
  const informer = <T extends KubeObject>(resource: Resource<T>, more: InformerOptions<T> = {}) =>
    new Informer<T>(client, resource, {
      clock,
      log,
      ...more,
      indexes: { ...indexes, ...more.indexes },
    });
  // What there are thousands of when Functions have no Pods.
  const resting = { resting: true };
  return {
    nodes: informer(resources.nodes),
    namespaces: informer(resources.namespaces),
    pods: informer(resources.pods),
    services: informer(resources.services, resting),
    serviceAccounts: informer(resources.serviceAccounts, resting),
    replicaSets: informer(resources.replicaSets, resting),
    deployments: informer(resources.deployments, resting),
    jobs: informer(resources.jobs),
    disruptionBudgets: informer(resources.podDisruptionBudgets),
    cronJobs: informer(resources.cronJobs),
    resourceQuotas: informer(resources.resourceQuotas),
    autoscalers: informer(resources.horizontalPodAutoscalers),
    endpoints: informer(resources.endpoints, resting),
    endpointSlices: informer(resources.endpointSlices, {
      ...resting,
      indexes: { [byService]: (slice) => [serviceKeyOf(slice)] },
    }),
  };
}

/** `namespace/service` of a slice; empty for one that belongs to none. */
export function serviceKeyOf(slice: KubeObject): string {
  const service = slice.metadata.labels?.["kubernetes.io/service-name"];
  return service ? `${slice.metadata.namespace}/${service}` : "";
}
