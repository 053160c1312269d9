import { formatQuantity, parseQuantity, type UnknownObject } from "@spry/kube";
import { badRequest } from "../errors.ts";
import { groupVersionOf, type ResourceType } from "../resources/resource-type.ts";
import {
  fieldSchema,
  isNamedField,
  itemSchema,
  objectMetaSchema,
  resolve,
  type Schema,
} from "./schema.ts";
import { prune } from "./structural.ts";

/** What to do about fields that the schema does not know (`?fieldValidation=`). */
export type FieldValidation = "Strict" | "Warn" | "Ignore";

const maxReported = 64;

/**
 * Drops fields that are not known, and refuses values of a wrong type, in place. Returns the warnings
 * for the client; under `Strict` throws a `StatusError` 400 instead.
 */
export function checkFields(
  type: ResourceType,
  object: UnknownObject,
  mode: FieldValidation,
): string[] {
  if (!["Strict", "Warn", "Ignore"].includes(mode)) {
    throw badRequest(
      `fieldValidation: Unsupported value: ${JSON.stringify(mode)}: supported values: "Ignore", "Strict", "Warn"`,
    );
  }
  const unknown = dropUnknownFields(type, object);
  if (unknown.length === 0 || mode === "Ignore") return [];
  const texts = unknown.slice(0, maxReported).map((path) => `unknown field "${path}"`);
  if (mode === "Warn") return texts;
  throw badRequest(
    `${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: strict decoding error: ${texts.join(", ")}`,
  );
}

/** The same without a judgement: the paths of what was dropped. */
export function dropUnknownFields(type: ResourceType, object: UnknownObject): string[] {
  return type.custom ? unknownCustomFields(type, object) : unknownBuiltinFields(type, object);
}

/** The schema of the kind comes later, with defaults; here only metadata must be well-formed. */
function unknownCustomFields(type: ResourceType, object: UnknownObject): string[] {
  const metadata = decode(object.metadata, objectMetaSchema, "metadata", type);
  if (!type.custom || type.custom.preserveUnknownFields) return metadata;
  return [...metadata, ...prune(object, type.custom.openApiSchema)];
}

function unknownBuiltinFields(type: ResourceType, object: UnknownObject): string[] {
  return decode(object, type.schema, "", type);
}

type JsonObject = Record<string, unknown>;

/**
 * What decoding into a Go structure does: unknown fields fall away (their paths are returned), nulls
 * are as good as nothing, values of another type are an error.
 */
function decode(value: unknown, schema: Schema, path: string, type: ResourceType): string[] {
  if (value === null || value === undefined) return [];
  checkValueType(value, schema, path, type);
  const unknown: string[] = [];
  if (Array.isArray(value)) {
    const items = itemSchema(schema);
    if (items) {
      for (const [index, item] of value.entries()) {
        if (items === quantitySchema) value[index] = canonicalQuantity(item, type);
        else unknown.push(...decode(item, items, `${path}[${index}]`, type));
      }
    }
  } else if (typeof value === "object" && (schema.properties || schema.additionalProperties)) {
    const fields = value as JsonObject;
    for (const key of Object.keys(fields)) {
      const at = path ? `${path}.${key}` : key;
      const field = fieldSchema(schema, key);
      if (!field) {
        if (!schema.properties) continue;
        delete fields[key];
        unknown.push(at);
      } else if (fields[key] === null && isNamedField(schema, key)) delete fields[key];
      else if (field === quantitySchema) fields[key] = canonicalQuantity(fields[key], type);
      else unknown.push(...decode(fields[key], field, at, type));
    }
  }
  return unknown;
}

const quantitySchema = resolve({ $ref: "io.k8s.apimachinery.pkg.api.resource.Quantity" });

/** Amounts are kept in their canonical form: `cpu: 0.5` is stored as `500m`. */
function canonicalQuantity(value: unknown, type: ResourceType): unknown {
  if (value === null || value === undefined) return value;
  try {
    return formatQuantity(parseQuantity(value as string));
  } catch (cause) {
    const message = `${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}`;
    throw badRequest(`${message}: ${quantityProblem}`, { cause });
  }
}

const quantityProblem =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** How Go's decoder names the types that a field can have. */
const goTypes: Record<string, string> = {
  string: "string",
  boolean: "bool",
  integer: "int32",
  number: "float64",
  array: "slice",
  object: "map",
};

function checkValueType(value: unknown, schema: Schema, path: string, type: ResourceType): void {
  if (!schema.type || schema.format === "int-or-string") return;
  const actual = Array.isArray(value) ? "array" : typeof value;
  const wanted = schema.type === "integer" ? "number" : schema.type;
  if (actual === wanted && !(schema.type === "integer" && !Number.isInteger(value))) return;
  // A decoder names the structure that holds the field, and neither indices nor keys of maps.
  const go =
    schema.type === "integer" && schema.format === "int64" ? "int64" : goTypes[schema.type];
  throw badRequest(
    `${type.kind} in version "${type.version}" cannot be handled as a ${type.kind}: json: cannot unmarshal ${actual === "boolean" ? "bool" : actual} into Go struct field ${type.kind}.${path.replace(/\[\d+\]/g, "")} of type ${go}`,
  );
}
