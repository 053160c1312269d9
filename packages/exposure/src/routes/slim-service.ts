import { type Service } from "@spry/kube";
import { exposableFrom } from "./service-address.ts";

/** The part of a Service that `routesOf` reads, and its addresses, to save memory: a cluster has many Services. */
export function withPorts({ metadata, spec }: Service): Service {
  const { name, namespace = "", uid, resourceVersion } = metadata;
  const permitted = metadata.annotations?.[exposableFrom];
  const kept = {
    ...(permitted === undefined ? {} : { annotations: { [exposableFrom]: permitted } }),
    name,
    namespace,
    ...(uid ? { uid } : {}),
    ...(resourceVersion ? { resourceVersion } : {}),
  };
  const { type, ports, clusterIPs } = spec ?? {};
  return {
    metadata: kept,
    spec: {
      ...(type ? { type } : {}),
      ...(ports ? { ports } : {}),
      ...(clusterIPs ? { clusterIPs } : {}),
    },
  } as Service;
}
