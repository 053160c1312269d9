import { type UnknownObject } from "@spry/kube";
import { type PrinterColumn } from "../resources/custom-version.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { builtinColumns } from "./builtin-columns.ts";
import { compilePath } from "./json-path.ts";
import { since } from "./duration.ts";

export type Cell = string | number | boolean | null;

export interface Column {
  name: string;
  type: "string" | "integer" | "number" | "boolean" | "date";
  format?: string;
  description?: string;
  /** 0 is always shown, more only in wide output. */
  priority?: number;
  cell(object: UnknownObject): Cell;
}

export const nameColumn: Column = {
  name: "Name",
  type: "string",
  format: "name",
  description: "Name must be unique within a namespace.",
  cell: ({ metadata }) => metadata.name ?? "",
};

export const ageColumn: Column = {
  name: "Age",
  type: "string",
  description:
    "CreationTimestamp is a timestamp representing the server time when this object was created.",
  cell: ({ metadata }) => since(metadata.creationTimestamp),
};

const customColumns = new WeakMap<PrinterColumn[], Column[]>();

export function columnsOf(type: ResourceType): Column[] {
  if (!type.custom) return [nameColumn, ...(builtinColumns[type.kind] ?? [ageColumn])];
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
      return typeof value === "number" ? Math.trunc(value) : null;
    case "number":
      return typeof value === "number" ? value : null;
    case "boolean":
      return typeof value === "boolean" ? value : null;
    case "date":
      return typeof value === "string" ? since(value) : null;
    default:
      return typeof value === "object" ? JSON.stringify(value) : String(value as string);
  }
}
