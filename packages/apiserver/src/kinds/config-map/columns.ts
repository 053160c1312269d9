import { type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column } from "../../table/column.ts";
import { sizeOf } from "../../table/fields.ts";

export const configMapColumns: Column[] = [
  column("Data", ({ data, binaryData }: UnknownObject) => sizeOf(data) + sizeOf(binaryData)),
  ageColumn,
];
