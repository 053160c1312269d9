import { type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column } from "../../table/column.ts";
import { sizeOf, text } from "../../table/fields.ts";

export const secretColumns: Column[] = [
  column("Type", ({ type }: UnknownObject) => text(type)),
  column("Data", ({ data }: UnknownObject) => sizeOf(data)),
  ageColumn,
];
