import { type UnknownObject } from "@spry/kube";
import { type ResourceType } from "../resources/resource-type.ts";
import { type Cell, type Column } from "./column.ts";
import { columnsOf } from "./columns.ts";

export interface TableOptions {
  metadata: object;
  /** Of meta.k8s.io. */
  version: string;
  /** `?includeObject=`: what a row carries besides its cells. */
  include: string;
  /** Whether columns are named. */
  headers: boolean;
}

interface Table {
  kind: string;
  rows: object[];
  [field: string]: unknown;
}

/** `meta/v1 Table`: objects as `kubectl get` prints them. */
export function tableOf(
  type: ResourceType,
  objects: UnknownObject[],
  options: TableOptions,
): Table {
  const columns = columnsOf(type);
  return {
    kind: "Table",
    apiVersion: `meta.k8s.io/${options.version}`,
    metadata: options.metadata,
    columnDefinitions: options.headers ? columns.map(definitionOf) : null,
    rows: objects.map((object) => ({
      cells: cellsOf(type, columns, object),
      object: rowObject(object, options),
    })),
  };
}

/** Built-in kinds are printed from one form, whatever the version that was asked for. */
function cellsOf(type: ResourceType, columns: Column[], object: UnknownObject): Cell[] {
  let printed = object;
  if (type.convert && !type.custom) {
    printed = structuredClone(object);
    type.convert.toStorage(printed);
  }
  return columns.map((column) => cellOf(column, printed));
}

/** An object that lacks what a column takes for granted is still listed. */
function cellOf(column: Column, object: UnknownObject): Cell {
  try {
    return column.cell(object);
  } catch {
    return "<unknown>";
  }
}

function definitionOf({ name, type, format, description, priority }: Column): object {
  return {
    name,
    type,
    format: format ?? "",
    description: description ?? "",
    priority: priority ?? 0,
  };
}

function rowObject(object: UnknownObject, { include, version }: TableOptions): object | null {
  if (include === "None") return null;
  if (include === "Object") return object;
  return {
    kind: "PartialObjectMetadata",
    apiVersion: `meta.k8s.io/${version}`,
    metadata: object.metadata,
  };
}
