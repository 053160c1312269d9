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
  validateScale(custom, object, errors);
  if (!found.some(({ reason }) => blocking.has(reason))) {
    validateRules(custom, object, old, errors, log);
  } else if (hasRules(custom)) {
    errors.invalid("<nil>", null, uncheckedRules);
  }
}

/** The replicas that `/scale` shows: told with the path as the definition words it. */
function validateScale(
  { scale }: NonNullable<ResourceType["custom"]>,
  object: UnknownObject,
  errors: FieldErrors,
): void {
  if (!scale) return;
  let value: unknown = object;
  for (const step of scale.specReplicasPath.split(".").slice(1)) {
    value = typeof value === "object" ? (value as UnknownFields | null)?.[step] : undefined;
  }
  if (typeof value === "number" && Number.isInteger(value) && value < 0) {
    errors.invalid(scale.specReplicasPath, value, "should be a non-negative integer");
  }
}

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
