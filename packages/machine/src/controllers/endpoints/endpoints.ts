/**
 * `v1 Endpoints` of Services with a selector, for programs that are older than EndpointSlices: the same Pods, as
 * kube-controller-manager's endpoints controller writes them.
 */
import {
  Controller,
  deepEqual,
  type Endpoints,
  isAlreadyExists,
  isNotFound,
  keyOf,
  type Pod,
  resources,
  type Service,
  splitKey,
} from "@spry/kube";
import { type ControllerContext } from "../context.ts";
import { isPodReady, isPodTerminal } from "../pod-state.ts";
import {
  hasSelector,
  headlessLabel,
  isHeadless,
  onServicesOfPods,
  podsOf,
  portsOf,
} from "./service-pods.ts";

/** Who writes these objects (Kubernetes 1.33): mirroring leaves them alone. */
export const managedByEndpointsController = {
  "endpoints.kubernetes.io/managed-by": "endpoint-controller",
};
/** More addresses than that are left out, and the annotation says so (`endpoints.kubernetes.io/over-capacity`). */
const maxAddresses = 1000;
const overCapacity = "endpoints.kubernetes.io/over-capacity";

type Subset = NonNullable<Endpoints["subsets"]>[number];
type Address = NonNullable<Subset["addresses"]>[number];

export function createEndpointsController(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const controller = new Controller({
    name: "endpoint",
    workers: 2,
    clock,
    log,
    reconcile: (key) => reconcileService(context, key),
  });
  caches.services.onChange(({ object }) => controller.enqueue(keyOf(object)));
  caches.endpoints.onChange(({ object }) => controller.enqueue(keyOf(object)));
  onServicesOfPods(context, (key) => controller.enqueue(key));
  return controller;
}

async function reconcileService(context: ControllerContext, key: string): Promise<void> {
  const { caches, client } = context;
  const service = caches.services.get(key);
  const existing = caches.endpoints.get(key);
  if (!service) {
    if (existing) await remove(context, key);
    return;
  }
  // Without a selector they belong to the client that writes them.
  if (!hasSelector(service) || service.metadata.deletionTimestamp) return;
  const desired = desiredEndpoints(service, podsOf(service, context));
  if (existing && isSame(existing, desired)) return;
  try {
    if (!existing) await client.create(resources.endpoints, desired);
    else {
      const { resourceVersion } = existing.metadata;
      const metadata = { ...desired.metadata, resourceVersion } as Endpoints["metadata"];
      await client.update(resources.endpoints, { ...desired, metadata });
    }
  } catch (error) {
    // The cache is behind: what it shows next brings the next pass.
    if (!isAlreadyExists(error) && !isNotFound(error)) throw error;
  }
}

/** Endpoints have no owner: they go with the Service of their name. */
async function remove({ client }: ControllerContext, key: string): Promise<void> {
  try {
    await client.delete(resources.endpoints, splitKey(key));
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** Pods by their ports, ready ones apart from the others; sorted, so that the same Pods give the same object. */
export function desiredEndpoints(service: Service, pods: readonly Pod[]): Endpoints {
  const { namespace = "", name = "", labels } = service.metadata;
  const { [headlessLabel]: _, ...others } = labels ?? {};
  const subsets = new Map<string, Subset>();
  let count = 0;
  for (const pod of [...pods].sort(byName)) {
    const address = addressOf(pod);
    if (!address || ++count > maxAddresses) continue;
    const ports = portsOf(service, pod).map(({ name: portName, ...port }) => ({
      ...(portName ? { name: portName } : {}),
      ...port,
    })) as NonNullable<Subset["ports"]>;
    const id = JSON.stringify(ports);
    const subset = subsets.get(id) ?? { ports };
    const list = isPublished(service, pod) ? "addresses" : "notReadyAddresses";
    (subset[list] ??= []).push(address);
    subsets.set(id, subset);
  }
  return {
    apiVersion: "v1",
    kind: "Endpoints",
    metadata: {
      namespace,
      name,
      labels: {
        ...others,
        ...managedByEndpointsController,
        ...(isHeadless(service) ? { [headlessLabel]: "" } : {}),
      },
      ...(count > maxAddresses ? { annotations: { [overCapacity]: "truncated" } } : {}),
    },
    ...(subsets.size > 0 ? { subsets: [...subsets.values()] } : {}),
  };
}

function addressOf(pod: Pod): Address | undefined {
  const { namespace, name, uid, deletionTimestamp } = pod.metadata;
  const ip = pod.status?.podIP;
  if (!ip || deletionTimestamp || isPodTerminal(pod)) return undefined;
  const targetRef = { kind: "Pod", namespace, name, uid } as NonNullable<Address["targetRef"]>;
  return { ip, ...(pod.spec?.nodeName ? { nodeName: pod.spec.nodeName } : {}), targetRef };
}

function isPublished(service: Service, pod: Pod): boolean {
  return service.spec?.publishNotReadyAddresses === true || isPodReady(pod);
}

function byName(a: Pod, b: Pod): number {
  return (a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1;
}

function isSame(a: Endpoints, b: Endpoints): boolean {
  return (
    deepEqual(a.subsets ?? [], b.subsets ?? []) &&
    deepEqual(a.metadata.labels, b.metadata.labels) &&
    a.metadata.annotations?.[overCapacity] === b.metadata.annotations?.[overCapacity]
  );
}
