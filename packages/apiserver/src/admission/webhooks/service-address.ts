import { type EndpointSlice, type Service } from "@spry/kube";
import { type Store } from "../../store/store.ts";

export interface Address {
  host: string;
  port: number;
}

/**
 * Where a Service's port is answered: a ready endpoint of it, for nothing on the embedded engine
 * listens on cluster addresses. Throws in the words of `k8s.io/apiserver/pkg/util/proxy`.
 */
export function serviceAddress(
  store: Store,
  { namespace, name, port }: { namespace: string; name: string; port: number },
): Address {
  const service = store.get({ collection: "/services", namespace, name })?.object as
    | Service
    | undefined;
  if (!service) throw new Error(`service "${name}" not found`);
  const { spec = {} } = service;
  if (spec.type === "ExternalName") return { host: spec.externalName ?? "", port };
  if (spec.clusterIP === "None") throw new Error('cannot route to service with ClusterIP "None"');
  const found = spec.ports?.find((each) => each.port === port);
  if (!found) throw new Error(`no service port ${port} found for service "${name}"`);
  for (const slice of slicesOf(store, namespace, name)) {
    const endpointPort = slice.ports?.find(
      (each) => (each.name ?? "") === (found.name ?? ""),
    )?.port;
    const ready = slice.endpoints?.find(({ conditions }) => conditions?.ready !== false);
    const [host] = ready?.addresses ?? [];
    if (host !== undefined && endpointPort != null) return { host, port: endpointPort };
  }
  throw new Error(`no endpoints available for service "${name}"`);
}

function slicesOf(store: Store, namespace: string, service: string): EndpointSlice[] {
  return store
    .list("discovery.k8s.io/endpointslices", namespace)
    .map(({ object }) => object as unknown as EndpointSlice)
    .filter(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === service);
}
