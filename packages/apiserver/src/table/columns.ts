import { type PrinterColumn } from "../resources/custom-version.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { builtinColumnsOf } from "./builtin-columns.ts";
import { ageColumn, type Cell, type Column, nameColumn } from "./column.ts";
import { compilePath } from "./json-path.ts";
import { since } from "./duration.ts";
import { isNumber } from "../json.ts";

const customColumns = new WeakMap<PrinterColumn[], Column[]>();

export function columnsOf(type: ResourceType): Column[] {
  if (!type.custom) return builtinColumnsOf(type.kind) ?? [nameColumn, ageColumn];
  let columns = customColumns.get(type.custom.columns);
  if (!columns) {
    columns = [nameColumn, ...type.custom.columns.map(customColumn)];
    customColumns.set(type.custom.columns, columns);
  }
  return columns;
}

function customColumn(column: PrinterColumn): Column {
  const find = compilePath(column.jsonPath);
  const { name, format, description, priority } = column;
  return {
    name,
    type: column.type as Column["type"],
    ...(format !== undefined && { format }),
    ...(description !== undefined && { description }),
    ...(priority !== undefined && { priority }),
    cell: (object) => cellOf(find(object)[0], column.type),
  };
}

/** A value under a column's type; what does not fit is not shown. */
function cellOf(value: unknown, type: string): Cell {
  if (value === undefined || value === null) return null;
  switch (type) {
    case "integer":
      return typeof value === "number"
        ? Math.trunc(value)
        : typeof value === "bigint"
          ? value
          : null;
    case "number":
      return isNumber(value) ? Number(value) : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      return typeof value === "string" ? since(value) : null;
    default:
      return typeof value === "object" ? JSON.stringify(value) : String(value);
  }
}
