import { type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column, integer, wide } from "../../table/column.ts";
import { text } from "../../table/fields.ts";

export const priorityClassColumns: Column[] = [
  column("Value", ({ value }: UnknownObject) => Number(value ?? 0), integer),
  column("Global-Default", ({ globalDefault }: UnknownObject) => globalDefault === true, {
    type: "boolean",
  }),
  ageColumn,
  column(
    "PreemptionPolicy",
    ({ preemptionPolicy }: UnknownObject) => text(preemptionPolicy) ?? "PreemptLowerPriority",
    wide,
  ),
];
