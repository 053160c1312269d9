import { type UnknownObject } from "@spry/kube";
import { type GoField, structureOf } from "./go-structures.ts";
import { fieldSchema, isRawExtension, itemSchema, resolve, type Schema } from "./schema.ts";

/** Empty lists and maps differ from absent ones until an object has been stored. */
export type State = "as sent" | "stored";

/**
 * The object as Go's encoder writes it once it has been stored: fields in the order of their structs, unset fields
 * left out, except for those that the types always write (`status: {}`, `rules: null`).
 */
export function goForm(
  object: UnknownObject,
  schema: Schema,
  state: State = "stored",
): UnknownObject {
  const { kind, apiVersion } = object;
  return Object.assign({ kind, apiVersion }, structForm(object, schema, state)) as UnknownObject;
}

/** What the kind is before anything is set. */
export function emptyForm(schema: Schema): Record<string, unknown> {
  return structForm({}, schema, "stored");
}

function structForm(
  from: Record<string, unknown>,
  schema: Schema,
  state: State,
): Record<string, unknown> {
  const structure = structureOf(schema);
  if (!structure) return from;
  const to: Record<string, unknown> = {};
  for (const field of structure.values()) {
    // Most fields of most objects; asked first, because this runs several times in every write.
    if (from[field.name] === undefined && !field.kept) continue;
    const below = fieldSchema(schema, field.name);
    if (!below) continue;
    const value = form(from[field.name], below, state);
    if (!isNothing(value, field, below, state)) to[field.name] = value;
    else if (field.kept) to[field.name] = zeroOf(field, below);
  }
  return to;
}

function form(value: unknown, schema: Schema, state: State): unknown {
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    return items?.properties ? value.map((each) => form(each, items, state)) : value;
  }
  if (typeof value !== "object" || value === null) return value;
  if (schema.properties) return structForm(value as Record<string, unknown>, schema, state);
  const entries =
    typeof schema.additionalProperties === "object"
      ? resolve(schema.additionalProperties)
      : undefined;
  if (!entries?.properties) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, form(each, entries, state)]),
  );
}

function isNothing(value: unknown, { pointer }: GoField, schema: Schema, state: State): boolean {
  if (value === undefined || value === null) return true;
  if (isRawExtension(schema)) return false;
  if (typeof value === "object" && state === "as sent") return false;
  if (Array.isArray(value)) return value.length === 0;
  if (typeof value === "object") return !structureOf(schema) && Object.keys(value).length === 0;
  return !pointer && (value === "" || value === 0 || value === false);
}

function zeroOf({ pointer, type }: GoField, schema: Schema): unknown {
  if (pointer || type.startsWith("[]") || type.startsWith("map[")) return null;
  if (schema.format === "date-time") return null;
  if (type === "resource.Quantity") return "0";
  if (type === "intstr.IntOrString") return 0;
  switch (schema.type) {
    case "string":
      return "";
    case "integer":
    case "number":
      return 0;
    case "boolean":
      return false;
  }
  return structureOf(schema) ? structForm({}, schema, "stored") : null;
}
