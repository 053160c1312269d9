import { formatQuantity, parseQuantity } from "@spry/kube";
import { badRequest } from "../errors.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import {
  definitionNameOf,
  fieldSchema,
  isNamedField,
  itemSchema,
  resolve,
  type Schema,
} from "./schema.ts";

/** Where a value stands. */
export interface Place {
  /** As people write it: `spec.list[0].map.key`. */
  path: string;
  /** As Go's decoder tells it: without indices and keys of maps. */
  goPath: string;
  /** The structure that holds it. */
  struct: string;
}

const quantitySchema = resolve({ $ref: "io.k8s.apimachinery.pkg.api.resource.Quantity" });
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

/**
 * What decoding into a Go structure does to JSON, in place: unknown fields fall away, nulls are as good
 * as nothing, amounts take their canonical form (`cpu: 0.5` becomes `500m`). A value of another type is
 * a `StatusError` 400.
 */
export class Decoding {
  /** Paths of the fields that fell away. */
  readonly unknown: string[] = [];
  readonly #type: ResourceType;

  constructor(type: ResourceType) {
    this.#type = type;
  }

  decode(value: unknown, schema: Schema, place: Place): void {
    if (value === null || value === undefined) return;
    this.#checkType(value, schema, place);
    if (Array.isArray(value)) this.#list(value, itemSchema(schema), place);
    else if (typeof value === "object" && (schema.properties || schema.additionalProperties)) {
      this.#object(value as Record<string, unknown>, schema, place);
    }
  }

  #list(list: unknown[], items: Schema | undefined, place: Place): void {
    if (!items) return;
    for (const [index, item] of list.entries()) {
      if (items === quantitySchema) list[index] = this.#quantity(item);
      else this.decode(item, items, { ...place, path: `${place.path}[${index}]` });
    }
  }

  #object(fields: Record<string, unknown>, schema: Schema, { path, goPath, struct }: Place): void {
    const owner = definitionNameOf(schema) ?? struct;
    for (const key of Object.keys(fields)) {
      const at = path ? `${path}.${key}` : key;
      const field = fieldSchema(schema, key);
      const named = isNamedField(schema, key);
      if (!field) {
        if (!schema.properties) continue;
        delete fields[key];
        this.unknown.push(at);
      } else if (fields[key] === null && named) delete fields[key];
      else if (field === quantitySchema) fields[key] = this.#quantity(fields[key]);
      else {
        const below = named ? `${goPath}.${key}` : goPath;
        this.decode(fields[key], field, { path: at, goPath: below, struct: owner });
      }
    }
  }

  #quantity(value: unknown): unknown {
    if (value === null || value === undefined) return value;
    try {
      return formatQuantity(parseQuantity(value as string));
    } catch (cause) {
      throw this.#refusal(quantityProblem, cause);
    }
  }

  #checkType(value: unknown, schema: Schema, { goPath, struct }: Place): void {
    if (!schema.type || schema.format === "int-or-string") return;
    const actual = Array.isArray(value) ? "array" : typeof value;
    const wanted = schema.type === "integer" ? "number" : schema.type;
    const isFraction = schema.type === "integer" && !Number.isInteger(value);
    if (actual === wanted && !isFraction) return;
    const isLong = schema.type === "integer" && schema.format === "int64";
    const go = isLong ? "int64" : goTypes[schema.type];
    const found = actual === "boolean" ? "bool" : actual;
    throw this.#refusal(
      `json: cannot unmarshal ${found} into Go struct field ${struct}${goPath} of type ${go}`,
    );
  }

  #refusal(problem: string, cause?: unknown): Error {
    const { kind, version } = this.#type;
    return badRequest(
      `${kind} in version "${version}" cannot be handled as a ${kind}: ${problem}`,
      { cause },
    );
  }
}
