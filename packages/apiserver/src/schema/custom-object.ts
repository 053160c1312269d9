import { type Logger, type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { goText } from "../patch/go-conversion.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { hasRules, validateRules } from "./cel-rules.ts";
import { applyDefaults, prune } from "./structural.ts";
import { validateValue } from "./validate.ts";
import { isInt64 } from "../json.ts";

/** Prunes and defaults an object of a CustomResourceDefinition, in place. */
export function completeCustomObject(type: ResourceType, object: UnknownObject): void {
  const { custom } = type;
  if (!custom) return;
  if (!custom.preserveUnknownFields) prune(object, custom.openApiSchema);
  applyDefaults(object, custom.openApiSchema);
}

/** Schema first; the rules assume that types are right. */
export function validateCustomObject(
  type: ResourceType,
  object: UnknownObject,
  errors: FieldErrors,
  old: UnknownObject | undefined,
  log: Logger,
): void {
  const { custom } = type;
  if (!custom) return;
  const before = errors.all.length;
  const body = bodyOf(object);
  validateValue(body, withoutTypeFields(custom.openApiSchema), errors, "", old && bodyOf(old));
  const found = errors.all.slice(before);
  validateScale(custom, object, errors);
  if (!found.some(({ reason }) => blocking.has(reason))) {
    validateRules(custom, object, old, errors, log);
  } else if (hasRules(custom)) {
    errors.invalid("<nil>", null, uncheckedRules);
  }
}

function bodyOf(object: UnknownObject): UnknownFields {
  const { apiVersion: _, kind: __, metadata: ___, ...body } = object;
  return body;
}

/** The replicas that `/scale` shows, reported with the path as the definition writes it. */
function validateScale(
  { scale }: NonNullable<ResourceType["custom"]>,
  object: UnknownObject,
  errors: FieldErrors,
): void {
  if (!scale) return;
  const path = scale.specReplicasPath;
  let value: unknown = object;
  const unreadable = (wanted: string) =>
    errors.invalid(
      path,
      0,
      `${path} accessor error: ${goText(value)} is of the type ${goType(value)}, expected ${wanted}`,
    );
  for (const step of path.split(".").slice(1)) {
    if (typeof value !== "object" || value === null || Array.isArray(value))
      return unreadable("map[string]interface{}");
    value = (value as UnknownFields)[step];
    if (value === undefined) return;
  }
  if (!isInt64(value)) return unreadable("int64");
  if (value < 0) errors.invalid(path, value, "should be a non-negative integer");
  if (value > maxReplicas)
    errors.invalid(path, value, `should be less than or equal to ${maxReplicas}`);
}

function goType(value: unknown): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  const names: Record<string, string> = {
    boolean: "bool",
    object: "map[string]interface {}",
    number: isInt64(value) ? "int64" : "float64",
    bigint: "int64",
  };
  return names[typeof value] ?? typeof value;
}

/** A Scale has an `int32`. */
const maxReplicas = 2 ** 31 - 1;

type UnknownFields = Record<string, unknown>;

/** After these a rule could not rely on the types, or take too long. */
const blocking = new Set([
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
  "FieldValueNotSupported",
]);
const uncheckedRules =
  "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

function withoutTypeFields(schema: UnknownSchema): UnknownSchema {
  if (!schema.required) return schema;
  const required = schema.required.filter(
    (key) => !["apiVersion", "kind", "metadata"].includes(key),
  );
  return { ...schema, required };
}

type UnknownSchema = NonNullable<ResourceType["custom"]>["openApiSchema"];
