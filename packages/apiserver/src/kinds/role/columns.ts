import { type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column, wide } from "../../table/column.ts";

export const bindingColumns: Column[] = [
  column("Role", ({ roleRef }: UnknownObject) => {
    const { kind, name } = (roleRef ?? {}) as { kind?: string; name?: string };
    return `${kind}/${name}`;
  }),
  ageColumn,
  ...(["User", "Group", "ServiceAccount"] as const).map((kind) =>
    column(`${kind}s`, ({ subjects }: UnknownObject) => subjectNames(subjects, kind), wide),
  ),
];

function subjectNames(subjects: unknown, kind: string): string {
  const all = (subjects ?? []) as { kind: string; name: string; namespace?: string }[];
  return all
    .filter((each) => each.kind === kind)
    .map(({ name, namespace = "" }) => (kind === "ServiceAccount" ? `${namespace}/${name}` : name))
    .join(", ");
}
