import { type EndpointSlice } from "@spry/kube";
import { ageColumn, column, type Column } from "../../table/column.ts";
import { limited } from "../../table/fields.ts";

interface EndpointsLike {
  subsets?: { addresses?: { ip: string }[]; ports?: { port: number }[] }[];
}

export const endpointsColumns: Column[] = [
  column<EndpointsLike>("Endpoints", endpoints),
  ageColumn,
];

export const endpointSliceColumns: Column[] = [
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
];

function endpoints({ subsets }: EndpointsLike): string | undefined {
  const all = (subsets ?? []).flatMap(({ addresses, ports }) =>
    (addresses ?? []).flatMap(({ ip }) =>
      ports?.length ? ports.map(({ port }) => `${ip}:${port}`) : [ip],
    ),
  );
  return limited(all, 3);
}
