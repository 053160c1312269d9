import {
  type Container,
  type Deployment,
  type EndpointSlice,
  type NetworkPolicy,
  type Pod,
  type Service,
} from "@spry/kube";

/** Service addresses are from here (`--service-cluster-ip-range` of a real cluster). */
export const serviceNetwork = "10.96.0.0/16";
export const clusterDomain = "cluster.local";

export type Protocol = "TCP" | "UDP" | "SCTP";

export interface Endpoint {
  ip: string;
  port: number;
}

export interface ServicePort {
  name: string;
  protocol: Protocol;
  /** What callers name. */
  port: number;
  endpoints: Endpoint[];
}

/** A Service as callers meet it: where its name leads, and who answers there. */
export interface ServiceView {
  namespace: string;
  name: string;
  /** Undefined for a headless one: callers meet the Pods themselves. */
  clusterIp?: string | undefined;
  /** The name that it stands for (`type: ExternalName`). */
  externalName?: string | undefined;
  ports: ServicePort[];
  /** Addresses behind a headless Service, with the host names that Pods have there. */
  addresses: { ip: string; hostname?: string | undefined }[];
  /** A caller keeps its endpoint for so long (`sessionAffinity: ClientIP`). */
  affinitySeconds?: number | undefined;
}

/** A Pod as NetworkPolicies see it. */
export interface PodView {
  namespace: string;
  labels: Readonly<Record<string, string>>;
  ip: string;
  ports: { name?: string | undefined; protocol: Protocol; port: number }[];
}

/** What the network of Pods follows from. */
export interface ClusterView {
  services: ServiceView[];
  policies: NetworkPolicy[];
  pods: PodView[];
  /**
   * The Pods behind a place at the gateway (`address:port`), as their Deployments describe them: those of a Service that is
   * served on demand, of which there may be none at present.
   */
  behind?: ReadonlyMap<string, PodView[]>;
  /** Labels by name. */
  namespaces: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

/** The API server's own Service has the first address of all. */
export const apiServerIp = "10.96.0.1";

/** The Service `kubernetes`, by which every Pod finds the API server. */
export function apiServerView(endpoint: Endpoint): ServiceView {
  return {
    namespace: "default",
    name: "kubernetes",
    clusterIp: apiServerIp,
    ports: [{ name: "https", protocol: "TCP", port: 443, endpoints: [endpoint] }],
    addresses: [],
  };
}

const serviceLabel = "kubernetes.io/service-name";
const defaultAffinitySeconds = 10_800;

export function serviceOfSlice({ metadata }: EndpointSlice): string {
  return `${metadata.namespace}/${metadata.labels?.[serviceLabel] ?? ""}`;
}

/** What a Service and its EndpointSlices say together. */
export function serviceView(service: Service, slices: readonly EndpointSlice[]): ServiceView {
  const { namespace = "", name = "" } = service.metadata;
  const { spec = {} } = service;
  const clusterIp = spec.clusterIP && spec.clusterIP !== "None" ? spec.clusterIP : undefined;
  const serving = slices.filter(({ addressType }) => addressType === "IPv4").map(servingEndpoints);
  const ports = (spec.ports ?? []).map((port) => ({
    name: port.name ?? "",
    protocol: (port.protocol ?? "TCP") as Protocol,
    port: port.port,
    endpoints: preferReady(
      serving.flatMap(({ slice, endpoints }) => {
        const target = slice.ports?.find((each) => (each.name ?? "") === (port.name ?? ""))?.port;
        if (target === undefined) return [];
        return endpoints.map(({ ip, ready }) => ({ ip, port: target, ready }));
      }),
    ).map(({ ip, port }) => ({ ip, port })),
  }));
  const affinity = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? defaultAffinitySeconds;
  return {
    namespace,
    name,
    clusterIp,
    externalName: spec.type === "ExternalName" ? spec.externalName : undefined,
    ports,
    addresses: serving.flatMap(({ endpoints }) =>
      endpoints.filter(({ ready }) => ready).map(({ ip, hostname }) => ({ ip, hostname })),
    ),
    affinitySeconds: spec.sessionAffinity === "ClientIP" ? affinity : undefined,
  };
}

function servingEndpoints(slice: EndpointSlice) {
  const endpoints = (slice.endpoints ?? []).flatMap(({ addresses, conditions, hostname }) => {
    const [ip] = addresses;
    const ready = conditions?.ready ?? true;
    const isServing = ready || (conditions?.serving === true && conditions.terminating === true);
    return ip && isServing ? [{ ip, ready, hostname }] : [];
  });
  return { slice, endpoints };
}

/** Those that end but still serve count only if no others do, as in kube-proxy. */
function preferReady<T extends { ready: boolean }>(endpoints: T[]): T[] {
  const ready = endpoints.filter((each) => each.ready);
  return ready.length > 0 ? ready : endpoints;
}

/** A Pod as NetworkPolicies see it; nothing for one on the machine's network, to which none applies. */
export function podView({ metadata, spec }: Pod, ip: string): PodView[] {
  if (spec?.hostNetwork) return [];
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  const ports = containers.flatMap(({ ports = [] }) =>
    ports.map(({ name, containerPort, protocol = "TCP" }) => ({
      name,
      protocol: protocol as Protocol,
      port: containerPort,
    })),
  );
  return [{ namespace: metadata.namespace ?? "", labels: metadata.labels ?? {}, ip, ports }];
}

export const placeOf = ({ ip, port }: Endpoint): string => `${ip}:${port}`;

/** Whose slices name places at the gateway (docs/adr/0018-serving-from-zero.md), and whose Pods are behind them. */
const managerLabel = "endpointslice.kubernetes.io/managed-by";
const gatewayManager = "gateway.serving.spry";
const servedLabel = "serving.knative.dev/service";

/** What of a Deployment says which Service its Pods are behind; undefined for one that is not served on demand. */
export function servedBy({ spec }: Deployment): string | undefined {
  return spec?.template.metadata?.labels?.[servedLabel];
}

/** Of a Deployment, what NetworkPolicies see of its Pods. */
export function withPodsAlone({ metadata, spec }: Deployment): Deployment {
  const { name, namespace, uid, resourceVersion } = metadata;
  const { metadata: ofPods, spec: pods } = spec?.template ?? {};
  const portsOf = (containers: Container[] = []) =>
    containers.flatMap(({ name, ports }) => (ports ? [{ name, ports }] : []));
  const template = {
    metadata: { labels: ofPods?.labels },
    spec: {
      hostNetwork: pods?.hostNetwork,
      initContainers: portsOf(pods?.initContainers),
      containers: portsOf(pods?.containers),
    },
  };
  return { metadata: { name, namespace, uid, resourceVersion }, spec: { template } } as Deployment;
}

/** `behind` of a view. A tag's Service is `<tag>-<service>`. */
export function podsBehind(
  slices: Iterable<EndpointSlice>,
  deployments: Iterable<Deployment>,
): Map<string, PodView[]> {
  const served = [...deployments];
  const byService = Map.groupBy(served, (each) => `${each.metadata.namespace}/${servedBy(each)}`);
  const behind = new Map<string, PodView[]>();
  for (const { metadata, endpoints, ports } of slices) {
    if (metadata.labels?.[managerLabel] !== gatewayManager) continue;
    const name = metadata.labels[serviceLabel] ?? "";
    const ofTag = (each: Deployment) =>
      each.metadata.namespace === metadata.namespace && name.endsWith(`-${servedBy(each)}`);
    const found = byService.get(`${metadata.namespace}/${name}`) ?? served.filter(ofTag);
    const pods = found.flatMap(({ metadata: { namespace }, spec }) =>
      podView(
        { metadata: { ...spec?.template.metadata, namespace }, spec: spec?.template.spec } as Pod,
        "",
      ),
    );
    for (const { addresses } of endpoints ?? [])
      for (const { port } of ports ?? [])
        for (const ip of addresses) if (port) behind.set(placeOf({ ip, port }), pods);
  }
  return behind;
}
