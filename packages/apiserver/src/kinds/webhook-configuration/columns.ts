import { type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column, integer } from "../../table/column.ts";

export const webhookColumns: Column[] = [
  column(
    "Webhooks",
    ({ webhooks }: UnknownObject) => (webhooks as [] | undefined)?.length ?? 0,
    integer,
  ),
  ageColumn,
];
