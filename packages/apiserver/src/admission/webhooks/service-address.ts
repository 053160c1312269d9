import { type EndpointSlice, type Service } from "@spry/kube";
import { type Store } from "../../store/store.ts";

export interface Address {
  host: string;
  port: number;
  /** It is the name that a Service of the type ExternalName has. */
  isExternal?: boolean;
}

interface ServicePort {
  namespace: string;
  name: string;
  port: number;
}

/**
 * Where a Service's port is answered: a ready endpoint of it, for nothing on the embedded engine
 * listens on cluster addresses. Throws in the words of `k8s.io/apiserver/pkg/util/proxy`.
 */
export function serviceAddress(store: Store, { namespace, name, port }: ServicePort): Address {
  const { spec = {} } = serviceOf(store, namespace, name);
  if (spec.type === "ExternalName")
    return { host: spec.externalName ?? "", port, isExternal: true };
  if (spec.clusterIP === "None") throw new Error('cannot route to service with ClusterIP "None"');
  const [address] = serviceAddresses(store, { namespace, name, port });
  if (!address) throw new Error(`no endpoints available for service "${name}"`);
  return address;
}

/** All ready endpoints of a Service that has endpoints; at least one. Throws in the same words. */
export function serviceAddresses(store: Store, { namespace, name, port }: ServicePort): Address[] {
  const { spec = {} } = serviceOf(store, namespace, name);
  if (spec.type === "ExternalName") throw new Error('unsupported service type "ExternalName"');
  const found = spec.ports?.find((each) => each.port === port);
  if (!found) throw new Error(`no service port ${port} found for service "${name}"`);
  const addresses = slicesOf(store, namespace, name).flatMap(({ ports, endpoints }) => {
    const number = ports?.find((each) => (each.name ?? "") === (found.name ?? ""))?.port;
    if (number == null) return [];
    const ready = (endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false);
    return ready.flatMap((each) => each.addresses.map((host) => ({ host, port: number })));
  });
  if (addresses.length === 0) throw new Error(`no endpoints available for service "${name}"`);
  return addresses;
}

function serviceOf(store: Store, namespace: string, name: string): Service {
  const stored = store.get({ collection: "/services", namespace, name });
  if (!stored) throw new Error(`service "${name}" not found`);
  return stored.object as unknown as Service;
}

export function slicesOf(store: Store, namespace: string, service: string): EndpointSlice[] {
  return store
    .list("discovery.k8s.io/endpointslices", namespace)
    .map(({ object }) => object as unknown as EndpointSlice)
    .filter(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === service);
}
