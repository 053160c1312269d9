import { type UnknownObject } from "@spry/kube";
import { ageColumn, column, type Column, integer } from "../../table/column.ts";
import { spec, status, text } from "../../table/fields.ts";

export const disruptionBudgetColumns: Column[] = [
  column("Min Available", (object: UnknownObject) => text(spec(object).minAvailable) ?? "N/A"),
  column("Max Unavailable", (object: UnknownObject) => text(spec(object).maxUnavailable) ?? "N/A"),
  column(
    "Allowed Disruptions",
    (object: UnknownObject) => Number(status(object).disruptionsAllowed ?? 0),
    integer,
  ),
  ageColumn,
];
