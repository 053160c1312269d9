import { type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column } from "../../table/column.ts";
import { limited } from "../../table/fields.ts";

interface IngressLike {
  spec?: { ingressClassName?: string; rules?: { host?: string }[]; tls?: object[] };
  status?: { loadBalancer?: { ingress?: { ip?: string; hostname?: string }[] } };
}

export const ingressColumns: Column[] = [
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
];

export const ingressClassColumns: Column[] = [
  column("Controller", ({ spec }: UnknownObject) => (spec as { controller?: string }).controller),
  column("Parameters", ({ spec }: UnknownObject) => {
    const { parameters } = spec as { parameters?: { kind: string; name: string } };
    return parameters && `${parameters.kind}/${parameters.name}`;
  }),
  ageColumn,
];
