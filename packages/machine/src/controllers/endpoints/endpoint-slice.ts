import {
  Controller,
  controllerRef,
  type EndpointSlice,
  keyOf,
  type Pod,
  resources,
  type Service,
} from "@spry/kube";
import { byService, type ControllerContext, serviceKeyOf } from "../context.ts";
import { isPodReady, isPodTerminal, isPodTerminating } from "../pod-state.ts";
import { hashName } from "../pod-template.ts";
import {
  hasSelector,
  headlessLabel,
  isHeadless,
  managedByLabel,
  onServicesOfPods,
  podsOf,
  type Port,
  portsOf,
  serviceLabel,
} from "./service-pods.ts";
import { applySlices } from "./slices.ts";

const manager = "endpointslice-controller.k8s.io";
/** The API allows 1000 per slice; with 100 a change of one Pod stays a small message. */
const maxEndpoints = 100;

type Endpoint = EndpointSlice["endpoints"][number];

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
  onServicesOfPods(context, (key) => controller.enqueue(key));
  return controller;
}

function isManaged(slice: EndpointSlice): boolean {
  return slice.metadata.labels?.[managedByLabel] === manager;
}

async function reconcileService(context: ControllerContext, key: string): Promise<void> {
  const { caches } = context;
  const service = caches.services.get(key);
  const present = caches.endpointSlices.byIndex(byService, key).filter(isManaged);
  // Without a selector the slices belong to the client that writes them; with the Service deleted, to the collector.
  if (!service || !hasSelector(service) || service.metadata.deletionTimestamp) return;
  await applySlices(context, present, desiredSlices(service, podsOf(service, context)));
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
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      namespace,
      generateName: `${name}-`,
      name: `${name}-${id}`,
      labels: {
        ...others,
        ...(isHeadless(service) ? { [headlessLabel]: "" } : {}),
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
