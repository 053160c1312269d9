import { deepEqual } from "@spry/kube";
import { FieldErrors } from "../field-errors.ts";
import { goRegExp } from "./go-regexp.ts";
import { fieldSchema, itemSchema, type Schema } from "./schema.ts";
import { isInt64, isNumber } from "../json.ts";

/** Kubernetes lists choices as texts, whatever they are. */
function shownChoice(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

type JsonObject = Record<string, unknown>;

/**
 * Checks a value against a structural schema, and reports each problem in the words of the API server
 * (`kube-openapi/pkg/validation`). `path` is empty at the object's root.
 */
export function validateValue(
  value: unknown,
  schema: Schema,
  errors: FieldErrors,
  path = "",
  old?: unknown,
): void {
  // What was stored before the schema forbade it may stay as it is (validation ratcheting).
  if (old !== undefined && deepEqual(value, old)) return;
  if (value === null) {
    if (!schema.nullable && schema.type) typeProblem(value, schema, errors, path);
    return;
  }
  if (!hasType(value, schema)) {
    typeProblem(value, schema, errors, path);
    if (schema.enum) errors.unsupported(path || "<nil>", value, schema.enum.map(shownChoice));
    if (typeof value === "number" && schema.type === "integer" && !isInRange(value, schema))
      errors.invalid("<nil>", "", outOfRange(schema, path));
    return;
  }
  if (schema.enum && !schema.enum.some((each) => deepEqual(each, value))) {
    errors.unsupported(path || "<nil>", value, schema.enum.map(shownChoice));
  }
  if (typeof value === "string") validateString(value, schema, errors, path);
  else if (isNumber(value)) validateNumber(value, schema, errors, path);
  else if (Array.isArray(value)) validateList(value, schema, errors, path, old);
  else if (typeof value === "object")
    validateObject(value as JsonObject, schema, errors, path, old);
  validateCombinations(value, schema, errors, path);
}

/** Whether a Go integer of the schema's format can have this value. */
function isInRange(value: number | bigint, { format }: Schema): boolean {
  if (typeof value === "number" && !Number.isInteger(value)) return false;
  const limit = format === "int32" ? 2 ** 31 : 2 ** 63;
  return value >= -limit && value < limit;
}

function outOfRange({ format }: Schema, path: string): string {
  const shown =
    format === "int32" || format === "int64" ? `with format ${format}` : "(default format)";
  return `Checked value must be of type integer ${shown} in ${path}`;
}

function typeNameOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (isNumber(value)) return isInt64(value) ? "integer" : "number";
  return typeof value;
}

function hasType(value: unknown, schema: Schema): boolean {
  const actual = typeNameOf(value);
  if (schema["x-kubernetes-int-or-string"] || schema.format === "int-or-string") {
    return actual === "integer" || actual === "string";
  }
  if (!schema.type) return true;
  return actual === schema.type || (schema.type === "number" && actual === "integer");
}

function typeProblem(value: unknown, schema: Schema, errors: FieldErrors, path: string): void {
  const { format, type = "object" } = schema;
  const isSized = typeof value === "number" && (format === "int32" || format === "int64");
  const actual = isSized ? "float64" : typeNameOf(value);
  const wanted = schema["x-kubernetes-int-or-string"] ? "integer,string" : isSized ? format : type;
  errors.typeInvalid(
    path || "<nil>",
    actual,
    `${path} in body must be of type ${wanted}: "${actual}"`,
  );
}

function validateString(value: string, schema: Schema, errors: FieldErrors, path: string): void {
  const length = Array.from(value).length;
  if (schema.maxLength !== undefined && length > schema.maxLength) {
    return errors.tooLong(path, schema.maxLength);
  }
  if (schema.minLength !== undefined && length < schema.minLength) {
    return errors.invalid(
      path,
      value,
      `${path} in body should be at least ${schema.minLength} chars long`,
    );
  }
  const pattern = schema.pattern === undefined ? undefined : compiled(schema.pattern);
  if (pattern && !pattern.test(value)) {
    return errors.invalid(path, value, `${path} in body should match '${schema.pattern}'`);
  }
  if (schema.format && !hasFormat(value, schema.format)) {
    errors.typeInvalid(
      path,
      value,
      `${path} in body must be of type ${schema.format}: ${JSON.stringify(value)}`,
    );
  }
}

/** Undefined for what this cannot read: such a pattern checks nothing. */
function compiled(pattern: string): ReturnType<typeof goRegExp> | undefined {
  try {
    return goRegExp(pattern);
  } catch {
    return undefined;
  }
}

const formats: Record<string, (value: string) => boolean> = {
  "date-time": (value) =>
    /^\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})$/.test(value) &&
    !Number.isNaN(Date.parse(value)),
  date: (value) => /^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(Date.parse(value)),
  byte: (value) => /^[A-Za-z0-9+/]*={0,2}$/.test(value) && value.length % 4 === 0,
  uuid: (value) =>
    /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(value),
  ipv4: (value) => /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/.test(value),
  email: (value) => /^[^\s@]+@[^\s@]+$/.test(value),
  uri: (value) => URL.canParse(value),
  hostname: (value) => /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/i.test(value),
};

/** Whether a text has a format of OpenAPI; formats that are not known fit. */
export function hasFormat(value: string, format: string): boolean {
  return formats[format]?.(value) ?? true;
}

function validateNumber(
  value: number | bigint,
  schema: Schema,
  errors: FieldErrors,
  path: string,
): void {
  const { minimum, maximum, multipleOf } = schema;
  if (minimum !== undefined) {
    if (schema.exclusiveMinimum ? value <= minimum : value < minimum) {
      const relation = schema.exclusiveMinimum ? "greater than" : "greater than or equal to";
      errors.invalid(path, value, `${path} in body should be ${relation} ${minimum}`);
    }
  }
  if (maximum !== undefined) {
    if (schema.exclusiveMaximum ? value >= maximum : value > maximum) {
      const relation = schema.exclusiveMaximum ? "less than" : "less than or equal to";
      errors.invalid(path, value, `${path} in body should be ${relation} ${maximum}`);
    }
  }
  if (multipleOf !== undefined && !isMultiple(value, multipleOf)) {
    errors.invalid(path, value, `${path} in body should be a multiple of ${multipleOf}`);
  }
  if (schema.type === "integer" && !isInRange(value, schema))
    errors.invalid("<nil>", "", outOfRange(schema, path));
}

function isMultiple(value: number | bigint, factor: number): boolean {
  if (typeof value === "bigint" && Number.isSafeInteger(factor))
    return value % BigInt(factor) === 0n;
  return Number.isInteger(Number(value) / factor);
}

function validateList(
  value: unknown[],
  schema: Schema,
  errors: FieldErrors,
  path: string,
  old: unknown,
): void {
  if (schema.maxItems !== undefined && value.length > schema.maxItems) {
    errors.tooMany(path, value.length, schema.maxItems);
  }
  if (schema.minItems !== undefined && value.length < schema.minItems) {
    errors.invalid(
      path,
      value.length,
      `${path} in body should have at least ${schema.minItems} items`,
    );
  }
  validateUnique(value, schema, errors, path);
  const items = itemSchema(schema);
  if (!items) return;
  const before = keyedItems(old, schema);
  for (const [index, item] of value.entries()) {
    const previous = before?.get(JSON.stringify(keysOf(item, schema)));
    validateValue(item, items, errors, `${path}[${index}]`, previous);
  }
}

/** Items of the old list by what identifies them; only lists of type map have that. */
function keyedItems(old: unknown, schema: Schema): Map<string, unknown> | undefined {
  if (schema["x-kubernetes-list-type"] !== "map" || !Array.isArray(old)) return undefined;
  return new Map(old.map((item) => [JSON.stringify(keysOf(item, schema)), item]));
}

function validateUnique(value: unknown[], schema: Schema, errors: FieldErrors, path: string): void {
  const type = schema["x-kubernetes-list-type"];
  if (type !== "set" && type !== "map") return;
  const seen = new Set<string>();
  for (const [index, item] of value.entries()) {
    const id = type === "set" ? item : keysOf(item, schema);
    const text = JSON.stringify(id);
    if (seen.has(text)) errors.duplicate(`${path}[${index}]`, id);
    seen.add(text);
  }
}

function keysOf(item: unknown, schema: Schema): JsonObject {
  const object = typeof item === "object" && item !== null ? (item as JsonObject) : {};
  const keys = (schema["x-kubernetes-list-map-keys"] ?? []).map((key) => [key, object[key]]);
  return Object.fromEntries(keys) as JsonObject;
}

function validateObject(
  value: JsonObject,
  schema: Schema,
  errors: FieldErrors,
  path: string,
  old: unknown,
): void {
  const count = Object.keys(value).length;
  if (schema.maxProperties !== undefined && count > schema.maxProperties) {
    errors.tooMany(path, count, schema.maxProperties);
  }
  if (schema.minProperties !== undefined && count < schema.minProperties) {
    errors.invalid(
      path,
      count,
      `${path} in body should have at least ${schema.minProperties} properties`,
    );
  }
  for (const key of schema.required ?? []) {
    if (value[key] === undefined) errors.required(path ? `${path}.${key}` : key);
  }
  const named = schema.properties ?? {};
  for (const [key, child] of Object.entries(value)) {
    if (child === undefined) continue;
    const field = fieldSchema(schema, key);
    if (!field) continue;
    const dotted = path ? `${path}.${key}` : key;
    const before = isPlainObject(old) ? old[key] : undefined;
    const at = Object.hasOwn(named, key) ? dotted : `${path}.${key}`;
    validateValue(child, field, errors, at, before);
  }
}

function isPlainObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `allOf`, `anyOf`, `oneOf`, `not`: about the value as a whole, in addition to the structural part. */
function validateCombinations(
  value: unknown,
  schema: Schema,
  errors: FieldErrors,
  path: string,
): void {
  // Reported about the whole object, as the API server does.
  const told = (problem: string) => errors.invalid("<nil>", "", `"${path}" must ${problem}`);
  const attempts = (schemas: Schema[]) => schemas.map((each) => problemsOf(value, each, path));
  const isEither = schema["x-kubernetes-int-or-string"] || schema.format === "int-or-string";
  if (schema.anyOf && !isEither) {
    const all = attempts(schema.anyOf);
    if (all.every((each) => each.length > 0)) {
      told("validate at least one schema (anyOf)");
      errors.all.push(...(all[0] ?? []));
    }
  }
  if (schema.oneOf && !isEither) {
    const all = attempts(schema.oneOf);
    const count = all.filter((each) => each.length === 0).length;
    const found = count === 0 ? "none valid" : `${count} valid alternatives`;
    if (count !== 1) told(`validate one and only one schema (oneOf). Found ${found}`);
    if (count === 0) errors.all.push(...(all[0] ?? []));
  }
  if (schema.allOf && !isEither) {
    const all = attempts(schema.allOf);
    const failed = all.filter((each) => each.length > 0);
    for (const each of failed) errors.all.push(...each);
    const none = failed.length === all.length ? ". None validated" : "";
    if (failed.length > 0) told(`validate all the schemas (allOf)${none}`);
  }
  if (schema.not && problemsOf(value, schema.not, path).length === 0)
    told("not validate the schema (not)");
}

function problemsOf(value: unknown, schema: Schema, path: string): FieldErrors["all"] {
  const errors = new FieldErrors();
  validateValue(value, schema, errors, path);
  return errors.all;
}
