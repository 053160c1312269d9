import { type UnknownObject } from "@spry/kube";
import { since } from "./duration.ts";

export type Cell = string | number | bigint | boolean | null;

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

/** A column from a function of the kind's own type, which the table of kinds vouches for. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function column<T>(
  name: string,
  cell: (object: T) => Cell | undefined,
  options: { type?: Column["type"]; wide?: boolean } = {},
): Column {
  return {
    name,
    type: options.type ?? "string",
    priority: options.wide ? 1 : 0,
    cell: (object) => cell(object as unknown as T) ?? "<none>",
  };
}

/** Options of columns. */
export const wide = { wide: true };
export const integer = { type: "integer" } as const;

export const createdAt: Column = {
  name: "Created At",
  type: "date",
  cell: ({ metadata }) => metadata.creationTimestamp ?? "<unknown>",
};
