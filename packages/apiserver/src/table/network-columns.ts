import {
  type EndpointSlice,
  type LabelSelector,
  type Service,
  type UnknownObject,
} from "@spry/kube";
import { ageColumn, type Column, column } from "./column.ts";
import { selectorText } from "./workload-columns.ts";

const wide = { wide: true };

interface EndpointsLike {
  subsets?: { addresses?: { ip: string }[]; ports?: { port: number }[] }[];
}
interface IngressLike {
  spec?: { ingressClassName?: string; rules?: { host?: string }[]; tls?: object[] };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

export const networkColumns: Record<string, Column[]> = {
  Service: [
    column<Service>("Type", ({ spec }) => spec?.type),
    column<Service>("Cluster-IP", ({ spec }) => spec?.clusterIP || undefined),
    column<Service>("External-IP", externalAddress),
    column<Service>("Port(s)", servicePorts),
    ageColumn,
    column<Service>(
      "Selector",
      ({ spec }) => selectorText({ matchLabels: spec?.selector ?? {} }),
      wide,
    ),
  ],
  Endpoints: [column<EndpointsLike>("Endpoints", endpoints), ageColumn],
  EndpointSlice: [
    column<EndpointSlice>("AddressType", ({ addressType }) => addressType),
    column<EndpointSlice>(
      "Ports",
      ({ ports }) =>
        limited(
          (ports ?? []).map(({ port }) => String(port ?? "*")),
          3,
        ) ?? "<unset>",
    ),
    column<EndpointSlice>(
      "Endpoints",
      (slice) =>
        limited(
          slice.endpoints.flatMap(({ addresses }) => addresses),
          3,
        ) ?? "<unset>",
    ),
    ageColumn,
  ],
  Ingress: [
    column<IngressLike>("Class", ({ spec }) => spec?.ingressClassName),
    column<IngressLike>(
      "Hosts",
      ({ spec }) =>
        limited(
          (spec?.rules ?? []).flatMap(({ host }) => host ?? []),
          3,
        ) ?? "*",
    ),
    column<IngressLike>("Address", ({ status }) =>
      (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip ?? hostname).join(","),
    ),
    column<IngressLike>("Ports", ({ spec }) => (spec?.tls?.length ? "80, 443" : "80")),
    ageColumn,
  ],
  IngressClass: [
    column("Controller", ({ spec }: UnknownObject) => (spec as { controller?: string }).controller),
    column("Parameters", ({ spec }: UnknownObject) => {
      const { parameters } = spec as { parameters?: { kind: string; name: string } };
      return parameters && `${parameters.kind}/${parameters.name}`;
    }),
    ageColumn,
  ],
  NetworkPolicy: [
    column("Pod-Selector", ({ spec }: UnknownObject) =>
      selectorText((spec as { podSelector?: LabelSelector }).podSelector),
    ),
    ageColumn,
  ],
};

function externalAddress({ spec, status }: Service): string | undefined {
  if (spec?.type === "ExternalName") return spec.externalName;
  const balanced = (status?.loadBalancer?.ingress ?? []).map(({ ip, hostname }) => ip ?? hostname);
  const all = [...balanced, ...(spec?.externalIPs ?? [])];
  if (all.length > 0) return all.join(",");
  return spec?.type === "LoadBalancer" ? "<pending>" : undefined;
}

function servicePorts({ spec }: Service): string | undefined {
  const ports = (spec?.ports ?? []).map(({ port, nodePort, protocol = "TCP" }) =>
    nodePort ? `${port}:${nodePort}/${protocol}` : `${port}/${protocol}`,
  );
  return ports.join(",") || undefined;
}

function endpoints({ subsets }: EndpointsLike): string | undefined {
  const all = (subsets ?? []).flatMap(({ addresses, ports }) =>
    (addresses ?? []).flatMap(({ ip }) =>
      ports?.length ? ports.map(({ port }) => `${ip}:${port}`) : [ip],
    ),
  );
  return limited(all, 3);
}

function limited(values: string[], max: number): string | undefined {
  if (values.length === 0) return undefined;
  const shown = values.slice(0, max).join(",");
  return values.length > max ? `${shown} + ${values.length - max} more...` : shown;
}
