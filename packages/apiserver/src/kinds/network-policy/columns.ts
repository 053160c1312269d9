import { type LabelSelector, type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column } from "../../table/column.ts";
import { selectorText } from "../../table/fields.ts";

export const networkPolicyColumns: Column[] = [
  column("Pod-Selector", ({ spec }: UnknownObject) =>
    selectorText((spec as { podSelector?: LabelSelector }).podSelector),
  ),
  ageColumn,
];
