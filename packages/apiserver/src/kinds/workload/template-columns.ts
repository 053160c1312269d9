import { type Container, type LabelSelector, type UnknownObject } from "@spry/kube";
import { column, type Column, wide } from "../../table/column.ts";
import { selectorText } from "../../table/fields.ts";

/** Objects that make Pods. */
export type Templated = UnknownObject & {
  spec?: { template?: { spec?: { containers?: Container[] } }; selector?: LabelSelector };
};

export const containerColumns: Column[] = [
  column<Templated>(
    "Containers",
    ({ spec }) => names(spec?.template?.spec?.containers, "name"),
    wide,
  ),
  column<Templated>("Images", ({ spec }) => names(spec?.template?.spec?.containers, "image"), wide),
];
export const selectorColumn = column<Templated>(
  "Selector",
  ({ spec }) => selectorText(spec?.selector),
  wide,
);

export function names(
  containers: Container[] | undefined,
  field: "name" | "image",
): string | undefined {
  return containers?.map((container) => container[field] ?? "").join(",") || undefined;
}
