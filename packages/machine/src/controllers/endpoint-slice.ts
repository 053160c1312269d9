import {
  Controller,
  controllerRef,
  deepEqual,
  type EndpointSlice,
  isAlreadyExists,
  isNotFound,
  keyOf,
  type Pod,
  requirementsOf,
  matchesLabels,
  resources,
  type Service,
  splitKey,
} from "@spry/kube";
import { byNamespace, byService, type ControllerContext, serviceKeyOf } from "./context.ts";
import { isPodReady, isPodTerminal, isPodTerminating } from "./pod-state.ts";
import { hashName } from "./pod-template.ts";

const serviceLabel = "kubernetes.io/service-name";
const headlessLabel = "service.kubernetes.io/headless";
const managedByLabel = "endpointslice.kubernetes.io/managed-by";
const manager = "endpointslice-controller.k8s.io";
/** The API allows 1000 per slice; with 100 a change of one Pod stays a small message. */
const maxEndpoints = 100;

type Endpoint = EndpointSlice["endpoints"][number];
type Port = NonNullable<EndpointSlice["ports"]>[number];

/** Says where the Pods of each Service answer: what the gateway routes by. */
export function createEndpointSliceController(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const controller = new Controller({
    name: "endpointslice",
    workers: 4,
    clock,
    log,
    reconcile: (key) => reconcileService(context, key),
  });
  caches.services.onChange(({ object }) => controller.enqueue(keyOf(object)));
  caches.endpointSlices.onChange(({ object }) => {
    const key = serviceKeyOf(object);
    if (key && isManaged(object)) controller.enqueue(key);
  });
  caches.pods.onChange((change) => {
    const pods = change.type === "updated" ? [change.previous, change.object] : [change.object];
    for (const service of caches.services.byIndex(
      byNamespace,
      change.object.metadata.namespace ?? "",
    ))
      if (pods.some((pod) => selects(service, pod))) controller.enqueue(keyOf(service));
  });
  return controller;
}

function isManaged(slice: EndpointSlice): boolean {
  return slice.metadata.labels?.[managedByLabel] === manager;
}

function selects(service: Service, pod: Pod): boolean {
  const selector = service.spec?.selector;
  if (!selector || Object.keys(selector).length === 0) return false;
  return matchesLabels(requirementsOf({ matchLabels: selector }), pod.metadata.labels);
}

async function reconcileService(context: ControllerContext, key: string): Promise<void> {
  const { caches, client } = context;
  const service = caches.services.get(key);
  const present = caches.endpointSlices.byIndex(byService, key).filter(isManaged);
  // Without a selector the slices are somebody else's; with the Service gone, the collector's.
  if (!service?.spec?.selector || service.metadata.deletionTimestamp) return;
  const { namespace = "" } = splitKey(key);
  const pods = caches.pods.byIndex(byNamespace, namespace).filter((pod) => selects(service, pod));
  const left = [...present];
  const take = (index: number) => (index < 0 ? undefined : left.splice(index, 1)[0]);
  const desired = desiredSlices(service, pods).map((slice) => ({
    slice,
    existing: take(left.findIndex(({ ports }) => deepEqual(ports ?? [], slice.ports))),
  }));
  for (const { slice, existing = left.shift() } of desired) {
    if (!existing) await createSlice(context, slice, present);
    else if (!isSame(existing, slice)) {
      const { name, resourceVersion } = existing.metadata;
      const metadata = { ...slice.metadata, name, resourceVersion } as EndpointSlice["metadata"];
      await client.update(resources.endpointSlices, { ...slice, metadata });
    }
  }
  for (const { metadata } of left) {
    await client
      .delete(resources.endpointSlices, { namespace, name: metadata.name ?? "" })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
  }
}

async function createSlice(
  { client }: ControllerContext,
  slice: EndpointSlice,
  present: readonly EndpointSlice[],
): Promise<void> {
  const taken = new Set(present.map(({ metadata }) => metadata.name));
  const { name = "" } = slice.metadata;
  // One of that name may have come to hold other ports.
  let free = name;
  for (let number = 1; taken.has(free); number++) free = `${name}x${number}`;
  try {
    const metadata = { ...slice.metadata, name: free };
    await client.create(resources.endpointSlices, { ...slice, metadata });
  } catch (error) {
    // The cache is behind: what it shows next brings the next pass.
    if (!isAlreadyExists(error)) throw error;
  }
}

function isSame(a: EndpointSlice, b: EndpointSlice): boolean {
  return (
    deepEqual(a.endpoints ?? [], b.endpoints) &&
    deepEqual(a.ports ?? [], b.ports) &&
    deepEqual(a.metadata.labels, b.metadata.labels)
  );
}

/** The slices of a Service: Pods whose ports resolve alike share them. */
export function desiredSlices(service: Service, pods: readonly Pod[]): EndpointSlice[] {
  const groups = new Map<string, { ports: Port[]; endpoints: Endpoint[] }>();
  const byName = [...pods].sort((a, b) =>
    (a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1,
  );
  for (const pod of byName) {
    const endpoint = endpointOf(service, pod);
    if (!endpoint) continue;
    const ports = portsOf(service, pod);
    const id = hashName(ports, 5);
    const group = groups.get(id) ?? { ports, endpoints: [] };
    group.endpoints.push(endpoint);
    groups.set(id, group);
  }
  // A Service without Pods has an empty slice: "known to have none" differs from "not looked at yet".
  if (groups.size === 0) groups.set(hashName([], 5), { ports: [], endpoints: [] });
  return [...groups].flatMap(([id, { ports, endpoints }]) => {
    const count = Math.max(1, Math.ceil(endpoints.length / maxEndpoints));
    return Array.from({ length: count }, (_, i) =>
      sliceOf(
        service,
        i === 0 ? id : `${id}-${i}`,
        ports,
        endpoints.slice(i * maxEndpoints, (i + 1) * maxEndpoints),
      ),
    );
  });
}

function sliceOf(
  service: Service,
  id: string,
  ports: Port[],
  endpoints: Endpoint[],
): EndpointSlice {
  const { namespace = "", name = "", labels } = service.metadata;
  const { [headlessLabel]: _, ...others } = labels ?? {};
  const isHeadless = (service.spec?.clusterIP ?? "None") === "None";
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      namespace,
      generateName: `${name}-`,
      name: `${name}-${id}`,
      labels: {
        ...others,
        ...(isHeadless ? { [headlessLabel]: "" } : {}),
        [serviceLabel]: name,
        [managedByLabel]: manager,
      },
      ownerReferences: [controllerRef(resources.services, service)],
    },
    addressType: "IPv4",
    endpoints,
    ports,
  };
}

function endpointOf(service: Service, pod: Pod): Endpoint | undefined {
  const { namespace, name, uid } = pod.metadata;
  const ip = pod.status?.podIP;
  if (!ip || isPodTerminal(pod)) return undefined;
  const serving = isPodReady(pod);
  const terminating = isPodTerminating(pod);
  const published = service.spec?.publishNotReadyAddresses === true;
  return {
    addresses: [ip],
    conditions: { ready: published || (serving && !terminating), serving, terminating },
    ...(pod.spec?.nodeName ? { nodeName: pod.spec.nodeName } : {}),
    targetRef: {
      kind: "Pod",
      ...(namespace ? { namespace } : {}),
      ...(name ? { name } : {}),
      ...(uid ? { uid } : {}),
    },
  };
}

/** The Service's ports as this Pod has them; a named port that it lacks is left out. */
function portsOf(service: Service, pod: Pod): Port[] {
  return (service.spec?.ports ?? []).flatMap((port) => {
    const protocol = port.protocol ?? "TCP";
    const wanted = port.targetPort ?? port.port;
    const number = typeof wanted === "number" ? wanted : namedPort(pod, wanted, protocol);
    if (number === undefined) return [];
    const { appProtocol } = port;
    return {
      name: port.name ?? "",
      protocol,
      port: number,
      ...(appProtocol ? { appProtocol } : {}),
    };
  });
}

function namedPort(pod: Pod, name: string, protocol: string): number | undefined {
  const sidecars = (pod.spec?.initContainers ?? []).filter(
    (each) => each.restartPolicy === "Always",
  );
  for (const container of [...(pod.spec?.containers ?? []), ...sidecars]) {
    const port = container.ports?.find(
      (each) => each.name === name && (each.protocol ?? "TCP") === protocol,
    );
    if (port) return port.containerPort;
  }
  return undefined;
}
