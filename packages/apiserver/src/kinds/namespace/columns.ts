import { type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column } from "../../table/column.ts";
import { status, text } from "../../table/fields.ts";

export const namespaceColumns: Column[] = [
  column("Status", (object: UnknownObject) => text(status(object).phase)),
  ageColumn,
];
