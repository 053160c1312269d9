import { isIP } from "node:net";
import { exposableFrom, permits } from "@spry/exposure";
import { type EndpointSlice, type Informer, type Service } from "@spry/kube";
import { isLoopback } from "../http/listening.ts";
import { serviceOfSlice } from "../routing/endpoints.ts";

/** For an informer's index: where a Service is reached. */
export function addressesOfService({ spec }: Service): readonly string[] {
  return (spec?.clusterIPs ?? []).filter((address) => isIP(address) !== 0);
}

/** For an informer's index: where the Pods of a slice are. */
export function addressesOfSlice({ endpoints }: EndpointSlice): readonly string[] {
  return (endpoints ?? []).flatMap(({ addresses }) => addresses);
}

export interface KeyReachSources {
  /** Indexed by `address`. */
  services: Informer<Service> | undefined;
  /** Indexed by `address`. */
  slices: Informer<EndpointSlice>;
}

/**
 * Why the keys of a tenant's APIRule are not fetched from this address, as the end of a sentence: it is that of another tenant's Service or Pod,
 * which the tenant may be unable to reach by itself. Addresses that belong to no Service have to be protected by the network.
 */
export function reachProblem(
  { services, slices }: KeyReachSources,
  tenant: string,
  address: string,
  port: number,
): string | undefined {
  const owners = services?.byIndex("address", address) ?? [];
  for (const slice of slices.byIndex("address", address)) {
    // Pods share loopback; then only the port says whose it is.
    if (isLoopback(address) && !slice.ports?.some((each) => each.port === port)) continue;
    const [key] = serviceOfSlice(slice);
    const service = key ? services?.get(key) : undefined;
    owners.push(service ?? { metadata: { namespace: slice.metadata.namespace ?? "", name: "" } });
  }
  const isOpen = owners.some(
    (service) => service.metadata.namespace === tenant || permits(service, tenant),
  );
  if (owners.length === 0 || isOpen) return undefined;
  return `belongs to a Service of another namespace, which has to permit it with the annotation ${exposableFrom}`;
}
