import { DecodingError } from "../schema/decoding.ts";
import { structureOf } from "../schema/go-structures.ts";
import { fieldSchema, itemSchema, resolve, type Schema } from "../schema/schema.ts";
import { isInt64 } from "../json.ts";

/**
 * How Kubernetes turns the outcome of a strategic merge patch into the types of the kind
 * (`apimachinery/pkg/runtime/converter.go`): other words than those of the JSON decoder.
 */

/** Throws a `DecodingError` for the first value that has no place in its field. */
export function checkConvertible(value: unknown, schema: Schema): void {
  if (value === null || value === undefined) return;
  const structure = structureOf(schema);
  const found = kindOf(value);
  if (structure) {
    if (found !== "map") throw new DecodingError(`cannot restore struct from: ${found}`);
    for (const field of structure.values()) {
      const below = fieldSchema(schema, field.name);
      const child = (value as Record<string, unknown>)[field.name];
      if (below) checkConvertible(child, below);
    }
    return;
  }
  if (schema.type === "array") checkList(value, found, schema);
  else if (schema.type === "object") checkMap(value, found, schema);
  else if (schema.type && schema.format !== "date-time" && schema.format !== "byte") {
    checkScalar(found, schema);
  }
}

function checkList(value: unknown, found: string, schema: Schema): void {
  if (!Array.isArray(value)) throw new DecodingError(`cannot restore slice from ${found}`);
  const items = itemSchema(schema);
  for (const item of value) if (items) checkConvertible(item, items);
}

function checkMap(value: unknown, found: string, schema: Schema): void {
  const entries = schema.additionalProperties;
  if (typeof entries !== "object") return;
  if (found !== "map") throw new DecodingError(`cannot restore map from ${found}`);
  for (const child of Object.values(value as object)) checkConvertible(child, resolve(entries));
}

const goKinds: Record<string, string> = { string: "string", boolean: "bool", number: "float64" };

function checkScalar(found: string, schema: Schema): void {
  const isInteger = schema.type === "integer";
  const wanted = isInteger ? (schema.format ?? "int32") : (goKinds[schema.type ?? ""] ?? "string");
  if (found === wanted || (found === "int64" && (isInteger || wanted === "float64"))) return;
  // Go could convert these, but JSON knows no such conversion.
  const near = ["int64", "float64"].includes(found) && (isInteger || found === "int64");
  const isConversion = near && wanted !== "bool";
  throw new DecodingError(
    isConversion ? `cannot convert ${found} to ${wanted}` : `unrecognized type: ${wanted}`,
  );
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return "slice";
  switch (typeof value) {
    case "object":
      return "map";
    case "boolean":
      return "bool";
    case "number":
      return isInt64(value) ? "int64" : "float64";
    case "bigint":
      return "int64";
  }
  return "string";
}

/** A JSON value as Go prints it (`%v`): `map[a:1 b:[x y]]`. */
export function goText(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  if (typeof value !== "object") return String(value);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `map[${entries.map(([key, each]) => `${key}:${goText(each)}`).join(" ")}]`;
}
