import { type Schema } from "./core-schemas.ts";
import { type FieldError } from "./field-error.ts";

/** More would not help the user. */
const maxErrors = 20;

/**
 * Where a value differs from the schema's types or lacks required fields. The API server checks
 * everything else; this makes it safe to read the value's fields.
 */
export function validateShape(schema: Schema, value: unknown, path: string): FieldError[] {
  const wrong = typeError(schema, value);
  if (wrong) return [{ path, message: `${path}: ${wrong}` }];
  if (Array.isArray(value)) {
    const items = schema.items ?? {};
    return value
      .flatMap((item, i) => validateShape(items, item, `${path}[${i}]`))
      .slice(0, maxErrors);
  }
  if (!isMap(value)) return [];
  const missing = (schema.required ?? [])
    .filter((field) => value[field] === undefined)
    .map((field) => ({ path: `${path}.${field}`, message: `${path}.${field} is required` }));
  const nested = Object.entries(value).flatMap(([key, item]) => {
    const known = Object.hasOwn(schema.properties ?? {}, key)
      ? schema.properties?.[key]
      : undefined;
    const child = known ?? schema.additionalProperties;
    if (!child || item === undefined) return [];
    return validateShape(child, item, known ? `${path}.${key}` : `${path}[${key}]`);
  });
  return [...missing, ...nested].slice(0, maxErrors);
}

function typeError(schema: Schema, value: unknown): string | undefined {
  const actual = typeOf(value);
  if (schema["x-kubernetes-int-or-string"]) {
    const fits = actual === "string" || actual === "integer";
    return fits ? undefined : `must be an integer or a string, not ${actual}`;
  }
  if (!schema.type || schema.type === actual) return undefined;
  return `must be of type ${schema.type}, not ${actual}`;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
