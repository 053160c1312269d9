import { FieldErrors } from "../../field-errors.ts";
import { type Schema } from "../../schema/schema.ts";
import { applyDefaults, prune } from "../../schema/structural.ts";
import { validateValue } from "../../schema/validate.ts";
import { copyOf } from "../../json-copy.ts";
import { deepEqual } from "@spry/kube";
import { validateRules } from "./rule-validation.ts";
import { validateStructure } from "./structure-validation.ts";

const types = ["array", "boolean", "integer", "number", "object", "string"];
const maxDepth = 64;
const metaFields = ["metadata", "kind", "apiVersion"];
const unsupported = [
  "additionalItems",
  "patternProperties",
  "definitions",
  "dependencies",
] as const;
const allowedAtRoot = new Set([
  "description",
  "type",
  "format",
  "title",
  "maximum",
  "exclusiveMaximum",
  "minimum",
  "exclusiveMinimum",
  "maxLength",
  "minLength",
  "pattern",
  "maxItems",
  "minItems",
  "uniqueItems",
  "multipleOf",
  "required",
  "items",
  "properties",
  "externalDocs",
  "example",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-validations",
]);
const allowedText = `[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]`;

/**
 * The schema of a version: structural, with defaults that are valid, and rules that can be evaluated
 * (`validateCustomResourceDefinitionValidation`). `path` is that of the schema.
 */
export function validateOpenApiSchema(
  root: Schema,
  path: string,
  hasStatus: boolean,
  errors: FieldErrors,
): void {
  if (hasStatus) validateRoot(root, path, errors);
  if (root.nullable) errors.forbidden(`${path}.nullable`, "nullable cannot be true at the root");
  const structural = new FieldErrors();
  validateStructure(root, path, structural);
  errors.all.push(...structural.all.toSorted((a, b) => (textOf(a) < textOf(b) ? -1 : 1)));
  const isStructural = structural.all.length === 0;
  const known = errors.all.length;
  if (isStructural) validateDefaults(root, path, errors, true);
  const hasGoodDefaults = errors.all.length === known;
  const beforeWalk = errors.all.length;
  walk(root, path, errors, { depth: 0, isRoot: true, forbidsDefaults: undefined });
  const isWhole = errors.all.length === beforeWalk;
  if (isStructural && hasGoodDefaults && isWhole) validateRules(root, path, errors);
}

function textOf({ field, message }: { field: string; message: string }): string {
  return `${field}: ${message}`;
}

/** With `/status` the schema is taken apart by properties: nothing at its root may speak of the whole. */
function validateRoot(root: Schema, path: string, errors: FieldErrors): void {
  if (root.type !== undefined && root.type !== "object") {
    const detail =
      'only "object" is allowed as the type at the root of the schema if the status subresource is enabled';
    errors.invalid(`${path}.type`, root.type, detail);
    return;
  }
  const other = Object.keys(root).find((key) => !allowedAtRoot.has(key) && key !== "nullable");
  if (other === undefined) return;
  const detail = `only ${allowedText} fields are allowed at the root of the schema if the status subresource is enabled`;
  errors.invalid(path, root, detail);
}

interface Walk {
  depth: number;
  isRoot: boolean;
  /** Why a default cannot be here. */
  forbidsDefaults: string | undefined;
}

function walk(schema: Schema, path: string, errors: FieldErrors, { depth, ...at }: Walk): void {
  if (depth > maxDepth) return errors.invalid(path, "", `nested deeper than ${maxDepth} levels`);
  validateNode(schema, path, errors, at.forbidsDefaults);
  const below = { depth: depth + 1, isRoot: false, forbidsDefaults: at.forbidsDefaults };
  if (typeof schema.additionalProperties === "object")
    walk(schema.additionalProperties, `${path}.additionalProperties`, errors, below);
  for (const [key, child] of Object.entries(schema.properties ?? {})) {
    const inTopLevel = at.isRoot && metaFields.includes(key) ? `in top-level ${key}` : undefined;
    const forbidsDefaults = inTopLevel ?? at.forbidsDefaults;
    walk(child, `${path}.properties[${key}]`, errors, { ...below, forbidsDefaults });
  }
  if (schema.items) walk(schema.items, `${path}.items`, errors, below);
  validateLists(schema, path, errors);
}

function validateNode(
  schema: Schema,
  path: string,
  errors: FieldErrors,
  forbidsDefaults: string | undefined,
): void {
  const { type = "" } = schema;
  if (type !== "" && !types.includes(type)) errors.unsupported(`${path}.type`, type, types);
  if (schema.default !== undefined && forbidsDefaults !== undefined)
    errors.forbidden(`${path}.default`, `must not be set ${forbidsDefaults}`);
  for (const key of unsupported) {
    if (key in schema) errors.forbidden(`${path}.${key}`, `${key} is not supported`);
  }
  if (schema.$ref !== undefined) errors.forbidden(`${path}.$ref`, "$ref is not supported");
  if (type === "null")
    errors.forbidden(`${path}.type`, "type cannot be set to null, use nullable as an alternative");
  if (schema.uniqueItems)
    errors.forbidden(
      `${path}.uniqueItems`,
      "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
    );
  const rest = schema.additionalProperties;
  const hasFields = Object.keys(schema.properties ?? {}).length > 0;
  if (hasFields && rest !== undefined && rest !== true)
    errors.forbidden(
      `${path}.additionalProperties`,
      "additionalProperties and properties are mutual exclusive",
    );
  if (schema["x-kubernetes-preserve-unknown-fields"] === false)
    errors.invalid(
      `${path}.x-kubernetes-preserve-unknown-fields`,
      false,
      "must be true or undefined",
    );
  const mapType = schema["x-kubernetes-map-type"];
  if (mapType !== undefined) {
    const detail = "must be object if x-kubernetes-map-type is specified";
    if (type === "") errors.required(`${path}.type`, detail);
    else if (type !== "object") errors.invalid(`${path}.type`, type, detail);
    if (!["atomic", "granular"].includes(mapType))
      errors.unsupported(`${path}.x-kubernetes-map-type`, mapType, ["atomic", "granular"]);
  }
}

function validateLists(schema: Schema, path: string, errors: FieldErrors): void {
  const { type = "", items } = schema;
  const listType = schema["x-kubernetes-list-type"];
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  if (listType !== undefined && type !== "array") {
    const detail = "must be array if x-kubernetes-list-type is specified";
    if (type === "") errors.required(`${path}.type`, detail);
    else errors.invalid(`${path}.type`, type, detail);
  } else if (listType === "set" && items) {
    const detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    const itemType = items["x-kubernetes-list-type"];
    if (items.type === "array" && itemType !== undefined && itemType !== "atomic")
      errors.invalid(`${path}.items.x-kubernetes-list-type`, itemType, detail);
    if (items.type === "object" && items["x-kubernetes-map-type"] !== "atomic")
      errors.invalid(
        `${path}.items.x-kubernetes-map-type`,
        items["x-kubernetes-list-type"] ?? null,
        detail,
      );
  }
  if (listType !== undefined && !["atomic", "set", "map"].includes(listType))
    errors.unsupported(`${path}.x-kubernetes-list-type`, listType, ["atomic", "map", "set"]);
  if (keys.length > 0 && listType !== "map") {
    const detail = "must be map if x-kubernetes-list-map-keys is non-empty";
    const at = `${path}.x-kubernetes-list-type`;
    if (listType === undefined) errors.required(at, detail);
    else errors.invalid(at, listType, detail);
  }
  if (listType === "map") validateKeys(schema, keys, path, errors);
  if (items && (listType === "map" || listType === "set")) {
    if (items.nullable)
      errors.forbidden(
        `${path}.items.nullable`,
        `cannot be nullable when x-kubernetes-list-type is ${listType}`,
      );
    if (listType === "map") validateKeyFields(items, keys, `${path}.items`, errors);
  }
}

function validateKeys({ items }: Schema, keys: string[], path: string, errors: FieldErrors): void {
  const at = `${path}.x-kubernetes-list-map-keys`;
  if (keys.length === 0) errors.required(at, "must not be empty if x-kubernetes-list-type is map");
  if (!items)
    return errors.required(`${path}.items`, "must have a schema if x-kubernetes-list-type is map");
  if (items.type !== "object") {
    const detail = "must be object if parent array's x-kubernetes-list-type is map";
    return errors.invalid(`${path}.items.type`, items.type ?? "", detail);
  }
  for (const [index, key] of keys.entries()) {
    const field = items.properties?.[key];
    if (!field) errors.invalid(at, keys, "entries must all be names of item properties");
    else if (field.type === "array" || field.type === "object") {
      const detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
      errors.invalid(`${path}.items.properties[${key}].type`, items.type, detail);
    }
    if (keys.indexOf(key) !== index) errors.invalid(at, keys, "must not contain duplicate entries");
  }
}

function validateKeyFields(items: Schema, keys: string[], path: string, errors: FieldErrors): void {
  for (const key of keys) {
    const field = items.properties?.[key];
    if (!field) continue;
    const at = `${path}.properties[${key}]`;
    if (!items.required?.includes(key) && field.default === undefined)
      errors.required(
        `${at}.default`,
        "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
      );
    if (field.nullable)
      errors.forbidden(
        `${at}.nullable`,
        "this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
      );
  }
}

/** Defaults must fit their own schemas. Those of metadata are forbidden elsewhere. */
function validateDefaults(
  schema: Schema,
  path: string,
  errors: FieldErrors,
  isRoot: boolean,
): void {
  const value = schema.default;
  if (value !== undefined) {
    const pruned = copyOf(value);
    prune(pruned, schema, "", schema["x-kubernetes-embedded-resource"] === true);
    if (!deepEqual(pruned, value))
      errors.invalid(`${path}.default`, value, "must not have unknown fields");
    const complete = copyOf(value);
    applyDefaults(complete, schema);
    const found = new FieldErrors();
    validateValue(complete, schema, found);
    for (const each of found.all) {
      const below = each.field === "<nil>" ? "" : each.field;
      const join = below === "" || below.startsWith("[") ? "" : ".";
      errors.all.push({ ...each, field: `${path}.default${join}${below}` });
    }
  }
  if (schema.items) validateDefaults(schema.items, `${path}.items`, errors, false);
  for (const [key, child] of Object.entries(schema.properties ?? {})) {
    if (isRoot && metaFields.includes(key)) continue;
    validateDefaults(child, `${path}.properties[${key}]`, errors, false);
  }
}
