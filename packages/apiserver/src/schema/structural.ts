import { copyOf } from "../json-copy.ts";
import { fieldSchema, isNamedField, itemSchema, type Schema } from "./schema.ts";

type JsonObject = Record<string, unknown>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Fields of an embedded resource that exist whatever the schema says. */
const typeFields = ["apiVersion", "kind", "metadata"];

/**
 * Removes, in place, every field that the schema does not know, unless the schema preserves unknown
 * fields there. Returns the paths of what was removed (`spec.foo`, `spec.list[0].bar`).
 */
export function prune(value: unknown, schema: Schema, path = "", root = true): string[] {
  const removed: string[] = [];
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    if (items) {
      for (const [index, item] of value.entries()) {
        removed.push(...prune(item, items, `${path}[${index}]`, false));
      }
    }
  } else if (isObject(value)) {
    const embedded = root || schema["x-kubernetes-embedded-resource"] === true;
    for (const key of Object.keys(value)) {
      const at = path ? `${path}.${key}` : key;
      if (embedded && typeFields.includes(key)) continue;
      const field = fieldSchema(schema, key);
      if (field) removed.push(...prune(value[key], field, at, false));
      else if (!keepsUnknown(schema)) {
        delete value[key];
        removed.push(at);
      }
    }
  }
  return removed;
}

function keepsUnknown(schema: Schema): boolean {
  if (schema["x-kubernetes-preserve-unknown-fields"]) return true;
  return schema.additionalProperties === true;
}

/**
 * Sets, in place, what is missing and has a default; also where a null stands that the schema does not
 * allow. Without a default such a null goes.
 */
export function applyDefaults(value: unknown, schema: Schema): void {
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    if (!items) return;
    for (const [index, item] of value.entries()) {
      if (item === null && !items.nullable && items.default !== undefined) {
        value[index] = copyOf(items.default);
      }
      applyDefaults(value[index], items);
    }
    return;
  }
  if (!isObject(value)) return;
  for (const key of Object.keys(schema.properties ?? {})) {
    const field = fieldSchema(schema, key);
    if (!field) continue;
    if (value[key] === null && !field.nullable) delete value[key];
    if (value[key] === undefined && field.default !== undefined) {
      value[key] = copyOf(field.default);
    }
  }
  for (const key of Object.keys(value)) {
    const field = fieldSchema(schema, key);
    if (!field) continue;
    const dropsNull = !isNamedField(schema, key) && field.default !== undefined && !field.nullable;
    if (value[key] === null && dropsNull) value[key] = copyOf(field.default);
    applyDefaults(value[key], field);
  }
}
