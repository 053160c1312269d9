import { type Service } from "@spry/kube";
import { ageColumn, column, type Column, wide } from "../../table/column.ts";
import { selectorText } from "../../table/fields.ts";

export const serviceColumns: Column[] = [
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
];

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
