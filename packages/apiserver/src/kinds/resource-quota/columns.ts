import { type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column } from "../../table/column.ts";
import { status } from "../../table/fields.ts";

export const resourceQuotaColumns: Column[] = [
  column("Request", (object: UnknownObject) =>
    quotas(object, (name) => !name.startsWith("limits.")),
  ),
  column("Limit", (object: UnknownObject) => quotas(object, (name) => name.startsWith("limits."))),
  ageColumn,
];

function quotas(object: UnknownObject, wanted: (name: string) => boolean): string {
  const { hard = {}, used = {} } = status(object) as Record<string, Record<string, string>>;
  return Object.keys(hard)
    .filter(wanted)
    .sort()
    .map((name) => `${name}: ${used[name] ?? "0"}/${hard[name]}`)
    .join(", ");
}
