import { gatewaySliceManager } from "@spry/function";
import { isNeverCalled, type EndpointSlice, type ObjectKey } from "@spry/kube";

const serviceNameLabel = "kubernetes.io/service-name";
const managedByLabel = "endpointslice.kubernetes.io/managed-by";

/** The Service of a slice that leads to Pods, as `namespace/service`, for an informer's index. */
export function serviceOfSlice(slice: EndpointSlice): ObjectKey[] {
  return isGatewaySlice(slice) ? [] : serviceOfAnySlice(slice);
}

/** The same for callers inside, whom slices may lead to gateways, too. */
export function serviceOfAnySlice(slice: EndpointSlice): ObjectKey[] {
  const name = slice.metadata.labels?.[serviceNameLabel];
  return name ? [`${slice.metadata.namespace}/${name}`] : [];
}

/** Without the addresses that are never called, no matter who has written the slice: link-local ones, metadata of clouds, names. */
export function withoutRefused(slice: EndpointSlice): EndpointSlice {
  const { endpoints } = slice;
  if (!endpoints?.some(({ addresses }) => addresses.some(isNeverCalled))) return slice;
  return {
    ...slice,
    endpoints: endpoints.filter(({ addresses }) => !addresses.some(isNeverCalled)),
  };
}

/** Whether the slice leads callers to gateways (ADR 0018). Routing by it would go in circles. */
export function isGatewaySlice({ metadata }: EndpointSlice): boolean {
  return metadata.labels?.[managedByLabel] === gatewaySliceManager;
}

/** `host:port` of the endpoints of slices, each once; `portOf` chooses the port of a slice. */
export interface Addresses {
  ready: string[];
  /** Terminating, but still serving. */
  ending: string[];
}

export function addressesOf(
  slices: readonly EndpointSlice[],
  portOf: (slice: EndpointSlice) => number | undefined,
): Addresses {
  const ready = new Set<string>();
  const ending = new Set<string>();
  for (const slice of slices) {
    const port = portOf(slice);
    if (port === undefined) continue;
    for (const { addresses, conditions } of slice.endpoints ?? []) {
      const [address] = addresses;
      if (!address) continue;
      const at = `${slice.addressType === "IPv6" ? `[${address}]` : address}:${port}`;
      if (conditions?.ready ?? true) ready.add(at);
      else if (conditions?.serving && conditions.terminating) ending.add(at);
    }
  }
  return { ready: [...ready], ending: [...ending] };
}
