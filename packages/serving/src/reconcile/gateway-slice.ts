import { gatewaySliceManager, knativeChildName } from "@spry/function";
import {
  controllerRef,
  deepEqual,
  type EndpointSlice,
  isNotFound,
  keyOf,
  type ObjectKey,
  type ReconcileResult,
  resources,
  type Service,
  splitKey,
} from "@spry/kube";
import { serviceNameLabel, sliceManagerLabel } from "../caches.ts";
import { type GatewayAddressing } from "../options.ts";
import { type Context } from "./context.ts";
import { type Places } from "./places.ts";
import { routeOfService } from "./placeholder.ts";

const endpointController = "endpointslice-controller.k8s.io";
/** How soon it is looked again whether the Pods of a Service that has them again can be reached. */
const lookAgainMs = 500;

export const sliceNameOf = (service: string) => knativeChildName(service, "-gateway");

/**
 * The slices that lead callers inside the cluster to the gateway (docs/adr/0018-serving-from-zero.md): one for each Service
 * of a Route, as long as the Service has no selector.
 */
export function gatewaySliceReconciler(
  context: Context,
  addressing: GatewayAddressing,
  places: Places,
  wake: { service(key: ObjectKey): void; route(key: ObjectKey): void },
): { reconcile(key: ObjectKey): Promise<ReconcileResult>; restore(): void } {
  const { client, caches } = context;

  /** One that cannot be kept, because it is another's, is replaced in the next pass. */
  function restore(): void {
    for (const slice of caches.slices.list()) {
      const place = placeIn(slice, addressing);
      const service = serviceKeyOf(slice);
      if (place && service) places.restore(service, place);
    }
  }

  async function reconcile(key: ObjectKey): Promise<ReconcileResult> {
    const { namespace, name } = splitKey(key);
    const service = caches.coreServices.get(key);
    const slice = caches.slices.get(`${namespace}/${sliceNameOf(name)}`);
    const isServed =
      service && !service.metadata.deletionTimestamp && routeOfService(context, service);
    if (!isServed) {
      if (slice) await remove(slice);
      release(key);
      return {};
    }
    if (Object.keys(service.spec?.selector ?? {}).length > 0) {
      if (!slice) {
        release(key);
        return {};
      }
      // Callers keep using the gateway until they can use the Pods.
      if (!(await hasReadyPods(service))) return { requeueAfterMs: lookAgainMs };
      await remove(slice);
      release(key);
      return {};
    }
    const desired = await desiredSlice(service, keyOf(isServed));
    if (!desired) return {};
    if (!slice) {
      await client.create(resources.endpointSlices, desired);
      return {};
    }
    const { addressType, endpoints, ports } = slice;
    const { endpoints: newEndpoints, ports: newPorts } = desired;
    if (deepEqual({ endpoints, ports }, { endpoints: newEndpoints, ports: newPorts })) return {};
    await client.update(resources.endpointSlices, {
      ...desired,
      addressType,
      metadata: {
        ...slice.metadata,
        labels: { ...slice.metadata.labels, ...desired.metadata.labels },
      },
    });
    return {};
  }

  /** Services that were refused may get a place now. */
  function release(key: ObjectKey): void {
    if (places.release(key)) for (const refused of places.refused) wake.service(refused);
  }

  async function desiredSlice(
    service: Service,
    route: ObjectKey,
  ): Promise<EndpointSlice | undefined> {
    const key = keyOf(service);
    const wasRefused = places.hasRefused(key);
    const place = places.take(key);
    // The Route says so in its conditions.
    if (places.hasRefused(key) !== wasRefused) wake.route(route);
    if (place === undefined) {
      if (!wasRefused) context.log.error({ service: key }, "no address is left for a Service");
      return undefined;
    }
    const addresses = addressing.kind === "address" ? [place] : await addressing.addresses();
    const port = addressing.kind === "address" ? addressing.port : Number(place);
    const { namespace = "", name = "" } = service.metadata;
    return {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: sliceNameOf(name),
        namespace,
        labels: { [serviceNameLabel]: name, [sliceManagerLabel]: gatewaySliceManager },
        ownerReferences: [controllerRef(resources.services, service)],
      },
      addressType: "IPv4",
      endpoints: addresses.toSorted().map((address) => ({
        addresses: [address],
        conditions: { ready: true, serving: true, terminating: false },
      })),
      ports: (service.spec?.ports ?? []).map((each) => ({
        name: each.name ?? "",
        port,
        protocol: "TCP",
      })),
    };
  }

  async function hasReadyPods({ metadata }: Service): Promise<boolean> {
    const labelSelector = `${serviceNameLabel}=${metadata.name},${sliceManagerLabel}=${endpointController}`;
    const { namespace } = metadata;
    const { items } = await client.list(resources.endpointSlices, { namespace, labelSelector });
    return items.some(({ endpoints }) =>
      (endpoints ?? []).some(({ conditions }) => conditions?.ready !== false),
    );
  }

  async function remove({ metadata }: EndpointSlice): Promise<void> {
    const { namespace, name = "", uid } = metadata;
    try {
      const preconditions = uid ? { preconditions: { uid } } : {};
      await client.delete(resources.endpointSlices, { namespace, name }, preconditions);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  return { reconcile, restore };
}

/** The Service that a slice of ours belongs to. */
export function serviceKeyOf({ metadata }: EndpointSlice): ObjectKey | undefined {
  const name = metadata.labels?.[serviceNameLabel];
  return name ? `${metadata.namespace}/${name}` : undefined;
}

function placeIn(slice: EndpointSlice, addressing: GatewayAddressing): string | undefined {
  if (addressing.kind === "address") return slice.endpoints?.[0]?.addresses[0];
  const port = slice.ports?.[0]?.port;
  return port === undefined ? undefined : String(port);
}
