import { deepEqual } from "@spry/kube";
import { type FieldErrors } from "../../field-errors.ts";
import { goRegExp } from "../../schema/go-regexp.ts";
import { type Schema } from "../../schema/schema.ts";

type Level = "root" | "item" | "field";

const maxDepth = 64;
const typeRequired: Record<Level, string> = {
  root: "must not be empty at the root",
  item: "must not be empty for specified array items",
  field: "must not be empty for specified object fields",
};
const intOrString: Schema[] = [{ type: "integer" }, { type: "string" }];

/**
 * What makes a schema structural: every field is specified outside of the logical junctors, with a type
 * (`apiextensions-apiserver/pkg/apiserver/schema/validation.go`).
 */
export function validateStructure(
  schema: Schema,
  path: string,
  errors: FieldErrors,
  level: Level = "root",
  depth = 0,
): void {
  // Reported by the walk through the whole schema.
  if (depth > maxDepth) return;
  const { type = "", properties = {}, additionalProperties: rest } = schema;
  const embedded = schema["x-kubernetes-embedded-resource"] === true;
  const keepsUnknown = schema["x-kubernetes-preserve-unknown-fields"] === true;
  const isEither = schema["x-kubernetes-int-or-string"] === true;
  if (type === "array" && !schema.items) errors.required(`${path}.items`, "must be specified");
  if (schema.items) validateStructure(schema.items, `${path}.items`, errors, "item", depth + 1);
  for (const [key, child] of Object.entries(properties))
    validateStructure(child, `${path}.properties[${key}]`, errors, "field", depth + 1);
  if (rest !== undefined) {
    const at = `${path}.additionalProperties`;
    if (level === "root") errors.forbidden(at, "must not be used at the root");
    if (typeof rest === "object") validateStructure(rest, at, errors, "field", depth + 1);
    if (embedded) errors.forbidden(at, "must not be used if x-kubernetes-embedded-resource is set");
  }
  const either = "must be false if x-kubernetes-int-or-string is true";
  if (isEither && keepsUnknown)
    errors.invalid(`${path}.x-kubernetes-preserve-unknown-fields`, true, either);
  if (isEither && embedded) errors.invalid(`${path}.x-kubernetes-embedded-resource`, true, either);
  validateJunctors(schema, path, errors, depth);
  const mustBeObject = "must be object if x-kubernetes-embedded-resource is true";
  if (embedded && type !== "object") {
    if (type === "") errors.required(`${path}.type`, mustBeObject);
    else errors.invalid(`${path}.type`, type, mustBeObject);
  } else if (type === "" && !isEither && !keepsUnknown) {
    errors.required(`${path}.type`, typeRequired[level]);
  }
  if (level === "root" && type !== "" && type !== "object")
    errors.invalid(`${path}.type`, type, "must be object at the root");
  validateMeta(schema, path, errors, level === "root", embedded);
  if (embedded && !keepsUnknown && Object.keys(properties).length === 0)
    errors.required(
      `${path}.properties`,
      "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields",
    );
}

/** Type and metadata of an object are the server's: only names may be restricted. */
function validateMeta(
  { properties = {} }: Schema,
  path: string,
  errors: FieldErrors,
  isRoot: boolean,
  embedded: boolean,
): void {
  const { kind, apiVersion, metadata } = properties;
  if (isRoot || embedded) {
    for (const [key, field] of Object.entries({ kind, apiVersion })) {
      if (field && field.type !== "string")
        errors.invalid(`${path}.properties[${key}].type`, field.type ?? "", "must be string");
    }
  }
  if (!metadata) return;
  const at = `${path}.properties[metadata]`;
  if ((isRoot || embedded) && metadata.type !== "object")
    errors.invalid(`${at}.type`, metadata.type ?? "", "must be object");
  if (!isRoot) return;
  const { type: _, default: __, properties: named = {}, description: ___, ...others } = metadata;
  const isRestricted = Object.keys(named).every((key) => ["name", "generateName"].includes(key));
  if (!isRestricted || Object.keys(others).length > 0)
    errors.forbidden(
      at,
      "must not specify anything other than name and generateName, but metadata is implicitly specified",
    );
}

function validateJunctors(schema: Schema, path: string, errors: FieldErrors, depth: number): void {
  const { anyOf = [], allOf = [], oneOf = [], not, pattern } = schema;
  const isPattern = (list: Schema[] | undefined) => deepEqual(list, intOrString);
  if (!isPattern(anyOf))
    for (const [index, each] of anyOf.entries())
      validateNested(each, `${path}.anyOf[${index}]`, errors, depth + 1);
  for (const [index, each] of allOf.entries()) {
    const { anyOf: types, ...others } = each;
    const skipped = index === 0 && isPattern(types) ? others : each;
    validateNested(skipped, `${path}.allOf[${index}]`, errors, depth + 1);
  }
  for (const [index, each] of oneOf.entries())
    validateNested(each, `${path}.oneOf[${index}]`, errors, depth + 1);
  if (not) validateNested(not, `${path}.not`, errors, depth + 1);
  if (pattern && !isExpression(pattern))
    errors.invalid(`${path}.pattern`, pattern, "must be a valid regular expression, but isn't");
}

function isExpression(pattern: string): boolean {
  try {
    return goRegExp(pattern) !== undefined;
  } catch {
    return false;
  }
}

const forbiddenTexts: [keyof Schema, string][] = [
  ["type", "must be empty to be structural"],
  ["additionalProperties", "must be undefined to be structural"],
  ["default", "must be undefined to be structural"],
  ["title", "must be empty to be structural"],
  ["description", "must be empty to be structural"],
  ["nullable", "must be false to be structural"],
  ["x-kubernetes-preserve-unknown-fields", "must be false to be structural"],
  ["x-kubernetes-embedded-resource", "must be false to be structural"],
  ["x-kubernetes-int-or-string", "must be false to be structural"],
  ["x-kubernetes-list-map-keys", "must be empty to be structural"],
  ["x-kubernetes-list-type", "must be undefined to be structural"],
  ["x-kubernetes-map-type", "must be undefined to be structural"],
  ["x-kubernetes-validations", "must be empty to be structural"],
];

/** Below a junctor only values are restricted. */
function validateNested(schema: Schema, path: string, errors: FieldErrors, depth: number): void {
  if (depth > maxDepth) return;
  validateJunctors(schema, path, errors, depth);
  if (schema.items) validateNested(schema.items, `${path}.items`, errors, depth + 1);
  for (const [key, child] of Object.entries(schema.properties ?? {}))
    validateNested(child, `${path}.properties[${key}]`, errors, depth + 1);
  for (const [key, detail] of forbiddenTexts) {
    const value = schema[key];
    if (value === undefined || value === false || value === "") continue;
    errors.forbidden(`${path}.${key}`, detail);
  }
  if (schema.properties?.metadata)
    errors.forbidden(`${path}.properties[metadata]`, "must not be specified in a nested context");
}
