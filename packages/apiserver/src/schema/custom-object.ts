import { type Logger, type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { validateRules } from "./cel-rules.ts";
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
  if (errors.all.length === before) validateRules(custom, object, old, errors, log);
}

function withoutTypeFields(schema: UnknownSchema): UnknownSchema {
  if (!schema.required) return schema;
  const required = schema.required.filter(
    (key) => !["apiVersion", "kind", "metadata"].includes(key),
  );
  return { ...schema, required };
}

type UnknownSchema = NonNullable<ResourceType["custom"]>["openApiSchema"];
