import {
  type EndpointSlice,
  isNotFound,
  type KubeClient,
  resources,
  type Service,
} from "@spry/kube";
import { clusterDomain, serviceView } from "./cluster-view.ts";

const label = "([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)";
const serviceName = new RegExp(`^${label}\\.${label}\\.svc(?:\\.${clusterDomain})?$`);

/**
 * For the platform's own programs, whose name server knows no Services: what answers at `<name>.<namespace>.svc` and
 * `<name>.<namespace>.svc.cluster.local`. Undefined for other names, and for a Service that does not exist; an ExternalName is
 * given as it is.
 */
export function createServiceLookup(client: KubeClient) {
  return async (host: string, port: number) => {
    const [, name, namespace] = serviceName.exec(host) ?? [];
    if (name === undefined || namespace === undefined) return undefined;
    let service: Service;
    try {
      service = await client.get(resources.services, { namespace, name });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
    const labelSelector = `kubernetes.io/service-name=${name}`;
    const { items } = await client.list(resources.endpointSlices, { namespace, labelSelector });
    return endpointsOf(service, items, port);
  };
}

function endpointsOf(service: Service, slices: EndpointSlice[], port: number) {
  const { clusterIp, externalName, ports, addresses } = serviceView(service, slices);
  if (externalName !== undefined) return [{ host: externalName, port }];
  if (clusterIp === undefined) return addresses.map(({ ip }) => ({ host: ip, port }));
  const found = ports.find((each) => each.protocol === "TCP" && each.port === port);
  return (found?.endpoints ?? []).map((each) => ({ host: each.ip, port: each.port }));
}
