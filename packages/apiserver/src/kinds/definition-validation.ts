import { type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { type DefinitionSpec } from "../resources/catalog.ts";
import { nameProblems } from "../resources/metadata.ts";
import { validateConversion } from "../schema/conversion/validation.ts";
import { parseRule } from "../schema/cel-environment.ts";
import { type Schema } from "../schema/schema.ts";
import { compilePath } from "../table/json-path.ts";

const maxSchemaDepth = 64;
const types = ["array", "boolean", "integer", "number", "object", "string"];

/** `apiextensions-apiserver/pkg/apis/apiextensions/validation`, the parts that keep the server sound. */
export function validateDefinition(
  object: UnknownObject,
  errors: FieldErrors,
  old: UnknownObject | undefined,
): void {
  const spec = object.spec as Partial<DefinitionSpec> | undefined;
  if (!spec) return errors.required("spec");
  const { names, group, scope, versions } = spec;
  for (const field of ["plural", "kind"] as const) {
    if (!names?.[field]) errors.required(`spec.names.${field}`);
  }
  if (!group) errors.required("spec.group");
  else if (!group.includes("."))
    errors.invalid("spec.group", group, "should be a domain with at least one dot");
  for (const problem of names?.plural ? nameProblems(names.plural, "service") : []) {
    errors.invalid("spec.names.plural", names?.plural, problem);
  }
  if (object.metadata.name !== `${names?.plural}.${group}`) {
    errors.invalid(
      "metadata.name",
      object.metadata.name,
      'must be spec.names.plural+"."+spec.group',
    );
  }
  if (scope !== "Namespaced" && scope !== "Cluster") {
    errors.unsupported("spec.scope", scope ?? "", ["Cluster", "Namespaced"]);
  }
  validateConversion(spec.conversion, "spec.conversion", errors);
  if (!Array.isArray(versions) || versions.length === 0) return errors.required("spec.versions");
  if (versions.filter((version) => version.storage).length !== 1) {
    errors.invalid(
      "spec.versions",
      versions.map(({ name }) => name),
      "must have exactly one version marked as storage version",
    );
  }
  const seen = new Set<string>();
  for (const [index, version] of versions.entries()) {
    const path = `spec.versions[${index}]`;
    if (!version.name) errors.required(`${path}.name`);
    else if (seen.has(version.name)) errors.duplicate(`${path}.name`, version.name);
    seen.add(version.name);
    const schema = version.schema?.openAPIV3Schema;
    if (!schema) errors.required(`${path}.schema.openAPIV3Schema`, "schemas are required");
    else validateSchema(schema, `${path}.schema.openAPIV3Schema`, errors, 0);
    for (const [at, column] of (version.additionalPrinterColumns ?? []).entries()) {
      checkPath(column.jsonPath, `${path}.additionalPrinterColumns[${at}].jsonPath`, errors);
    }
    const scale = version.subresources?.scale;
    if (scale) {
      checkPath(scale.specReplicasPath, `${path}.subresources.scale.specReplicasPath`, errors);
      checkPath(scale.statusReplicasPath, `${path}.subresources.scale.statusReplicasPath`, errors);
    }
  }
  const before = old?.spec as DefinitionSpec | undefined;
  if (before && before.scope !== scope) errors.invalid("spec.scope", scope, "field is immutable");
}

function checkPath(path: string | undefined, field: string, errors: FieldErrors): void {
  if (!path) return errors.required(field);
  try {
    compilePath(path);
  } catch (error) {
    errors.invalid(field, path, error instanceof Error ? error.message : String(error));
  }
}

function validateSchema(schema: Schema, path: string, errors: FieldErrors, depth: number): void {
  if (depth > maxSchemaDepth)
    return errors.invalid(path, "", `nested deeper than ${maxSchemaDepth} levels`);
  const free =
    schema["x-kubernetes-preserve-unknown-fields"] || schema["x-kubernetes-int-or-string"];
  if (!schema.type && !free)
    errors.required(`${path}.type`, "must not be empty for specified object fields");
  else if (schema.type && !types.includes(schema.type))
    errors.unsupported(`${path}.type`, schema.type, types);
  if (schema.type === "array" && !schema.items)
    errors.required(`${path}.items`, "must be specified");
  if (schema.properties && schema.additionalProperties) {
    errors.forbidden(
      `${path}.additionalProperties`,
      "additionalProperties and properties are mutual exclusive",
    );
  }
  if (schema["x-kubernetes-list-type"] === "map" && !schema["x-kubernetes-list-map-keys"]?.length) {
    errors.required(
      `${path}.x-kubernetes-list-map-keys`,
      "must not be empty if x-kubernetes-list-type is map",
    );
  }
  for (const [index, rule] of (schema["x-kubernetes-validations"] ?? []).entries()) {
    validateRule(rule, `${path}.x-kubernetes-validations[${index}]`, errors);
  }
  for (const [key, child] of Object.entries(schema.properties ?? {})) {
    validateSchema(child, `${path}.properties[${key}]`, errors, depth + 1);
  }
  if (schema.items) validateSchema(schema.items, `${path}.items`, errors, depth + 1);
  if (typeof schema.additionalProperties === "object") {
    validateSchema(schema.additionalProperties, `${path}.additionalProperties`, errors, depth + 1);
  }
}

function validateRule(
  rule: NonNullable<Schema["x-kubernetes-validations"]>[number],
  path: string,
  errors: FieldErrors,
): void {
  if (!rule.rule?.trim()) return errors.required(`${path}.rule`);
  for (const field of ["rule", "messageExpression"] as const) {
    const expression = rule[field];
    if (!expression) continue;
    try {
      parseRule(expression);
    } catch (error) {
      const problem = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
      errors.invalid(`${path}.${field}`, expression, `compilation failed: ${problem}`);
    }
  }
}
