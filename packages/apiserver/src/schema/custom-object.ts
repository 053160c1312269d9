import { type Logger, type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { hasRules, validateRules } from "./cel-rules.ts";
import { applyDefaults, prune } from "./structural.ts";
import { validateValue } from "./validate.ts";

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
  const { apiVersion: _, kind: __, metadata: ___, ...body } = object;
  validateValue(body, withoutTypeFields(custom.openApiSchema), errors);
  const found = errors.all.slice(before);
  if (!found.some(({ reason }) => blocking.has(reason))) {
    validateRules(custom, object, old, errors, log);
  } else if (hasRules(custom)) {
    errors.invalid("<nil>", null, uncheckedRules);
  }
}

/** After these a rule could not rely on the types, or take too long. */
const blocking = new Set([
  "FieldValueRequired",
  "FieldValueTooLong",
  "FieldValueTooMany",
  "FieldValueTypeInvalid",
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
