import { readFileSync } from "node:fs";

/**
 * The part of OpenAPI v3 that describes Kubernetes objects, for built-in kinds and for
 * CustomResourceDefinitions alike. Everything that needs the shape of an object (patches, server-side
 * apply, validation, discovery) works on this one type.
 */
export interface Schema {
  $ref?: string;
  type?: string;
  format?: string;
  title?: string;
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  required?: string[];
  default?: unknown;
  nullable?: boolean;
  enum?: unknown[];
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: boolean;
  exclusiveMaximum?: boolean;
  multipleOf?: number;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minProperties?: number;
  maxProperties?: number;
  allOf?: Schema[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  not?: Schema;
  "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  "x-kubernetes-list-map-keys"?: string[];
  "x-kubernetes-map-type"?: "atomic" | "granular";
  "x-kubernetes-patch-strategy"?: string;
  "x-kubernetes-patch-merge-key"?: string;
  "x-kubernetes-preserve-unknown-fields"?: boolean;
  "x-kubernetes-embedded-resource"?: boolean;
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-validations"?: ValidationRule[];
  "x-kubernetes-group-version-kind"?: { group: string; version: string; kind: string }[];
}

/** A CEL rule of `x-kubernetes-validations`. */
export interface ValidationRule {
  rule: string;
  message?: string;
  messageExpression?: string;
  reason?: string;
  fieldPath?: string;
  optionalOldSelf?: boolean;
}

/** One resource as the generated file describes it. */
export interface BuiltinResource {
  plural: string;
  singular: string;
  kind: string;
  namespaced: boolean;
  shortNames?: string[];
  categories?: string[];
  status: boolean;
  scale: boolean;
  definition: string;
}

interface BuiltinGroupVersion {
  group: string;
  version: string;
  resources: BuiltinResource[];
}

export interface BuiltinSchema {
  release: string;
  groupVersions: BuiltinGroupVersion[];
  /** Kinds that are answered when they are created, and never stored. */
  reviews: BuiltinGroupVersion[];
  definitions: Record<string, Schema>;
}

/** What `tools/generate-kube-schema` wrote: small enough (1 ms to read) to be loaded at once. */
export const builtin = JSON.parse(
  readFileSync(new URL("../generated/kube-schema.json", import.meta.url), "utf8"),
) as BuiltinSchema;

const resolved = new WeakMap<Schema, Schema>();
const names = new WeakMap<Schema, string>(
  Object.entries(builtin.definitions).map(([name, schema]) => [schema, name]),
);

/** The schema behind a reference, with the keywords next to the reference added. */
export function resolve(schema: Schema): Schema {
  if (schema.$ref === undefined) return schema;
  let result = resolved.get(schema);
  if (!result) {
    const { $ref, ...beside } = schema;
    const target = builtin.definitions[$ref];
    if (!target) throw new Error(`schema refers to ${$ref}, which does not exist`);
    result = Object.keys(beside).length > 0 ? { ...target, ...beside } : target;
    names.set(result, $ref);
    resolved.set(schema, result);
  }
  return result;
}

/** The name of a definition: `io.k8s.api.apps.v1.DeploymentSpec`. */
export function fullNameOf(schema: Schema): string | undefined {
  return names.get(schema);
}

/** The last part of the name of a definition: `DeploymentSpec`. */
export function definitionNameOf(schema: Schema): string | undefined {
  const name = names.get(schema);
  return name?.slice(name.lastIndexOf(".") + 1);
}

/** `runtime.RawExtension`: any JSON, which is kept as it came, and of which nothing is known. */
export function isRawExtension(schema: Schema | undefined): boolean {
  return schema !== undefined && definitionNameOf(schema) === "RawExtension";
}

/** The schema of one field or map entry; undefined when the schema says nothing about it. */
export function fieldSchema(schema: Schema | undefined, key: string): Schema | undefined {
  if (!schema) return undefined;
  if (schema.properties && Object.hasOwn(schema.properties, key)) {
    const field = schema.properties[key];
    return field && resolve(field);
  }
  const rest = schema.additionalProperties;
  return typeof rest === "object" ? resolve(rest) : undefined;
}

export function itemSchema(schema: Schema | undefined): Schema | undefined {
  return schema?.items && resolve(schema.items);
}

/** Whether the key is a field by name, rather than an entry of a map. */
export function isNamedField(schema: Schema | undefined, key: string): boolean {
  return schema?.properties !== undefined && Object.hasOwn(schema.properties, key);
}

export const objectMetaSchema = resolve({
  $ref: "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
});
