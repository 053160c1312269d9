import { formatQuantity, parseQuantity } from "@spry/kube";
import { structureOf } from "./go-structures.ts";
import { storedBytes, storedTime } from "./go-values.ts";
import {
  definitionNameOf,
  fieldSchema,
  fullNameOf,
  isNamedField,
  isRawExtension,
  itemSchema,
  resolve,
  type Schema,
} from "./schema.ts";
import { isInt64, isNumber } from "../json.ts";

/** Where a value stands. */
export interface Place {
  /** As people write it: `spec.list[0].map.key`. */
  path: string;
  /** As Go's decoder writes it: without indices and keys of maps. */
  goPath: string;
  /** The structure that holds it. */
  struct: string;
  /** Its Go type: `[]v1.Container`; empty when it is not known. */
  goType: string;
}

/** A value that does not fit its field; the message is that of Go's decoder. */
export class DecodingError extends Error {
  override readonly name = "DecodingError";
}

const quantitySchema = resolve({ $ref: "io.k8s.apimachinery.pkg.api.resource.Quantity" });
const quantityProblem =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** How Go's decoder names the types of fields that are in no structure of the API modules. */
const goTypes: Record<string, string> = {
  string: "string",
  boolean: "bool",
  integer: "int32",
  number: "float64",
  array: "[]interface {}",
  object: "map[string]interface {}",
};

/**
 * What decoding into a Go structure does to JSON, in place: unknown fields fall away, nulls are as good
 * as nothing (in lists and maps: as an empty value), amounts and times take their canonical form
 * (`cpu: 0.5` becomes `500m`). A value of another type is a `DecodingError`.
 */
export class Decoding {
  /** Paths of the fields that fell away. */
  readonly unknown: string[] = [];

  decode(value: unknown, schema: Schema, place: Place): unknown {
    if (value === null || value === undefined) return value;
    if (schema === quantitySchema) return quantity(value);
    if (isRawExtension(schema)) return value;
    checkType(value, schema, place);
    if (typeof value === "bigint") return schema.type === "number" ? Number(value) : value;
    if (typeof value === "string") return text(value, schema);
    if (Array.isArray(value)) this.#list(value, itemSchema(schema), place);
    else if (typeof value === "object" && (schema.properties || schema.additionalProperties)) {
      this.#object(value as Record<string, unknown>, schema, place);
    }
    return value;
  }

  #list(list: unknown[], items: Schema | undefined, place: Place): void {
    if (!items) return;
    const goType = place.goType.replace(/^\[\]/, "");
    for (const [index, item] of list.entries()) {
      const at = { ...place, path: `${place.path}[${index}]`, goType };
      list[index] = item === null ? emptyValue(items) : this.decode(item, items, at);
    }
  }

  #object(fields: Record<string, unknown>, schema: Schema, place: Place): void {
    const { path, goPath, goType } = place;
    const owner = definitionNameOf(schema) ?? place.struct;
    const structure = structureOf(schema);
    const entryType = goType.replace(/^map\[string\]/, "");
    for (const key of Object.keys(fields)) {
      const at = path ? `${path}.${key}` : key;
      const field = fieldSchema(schema, key);
      const named = isNamedField(schema, key);
      if (!field) {
        if (!schema.properties) continue;
        delete fields[key];
        this.unknown.push(at);
      } else if (fields[key] === null) {
        if (named) delete fields[key];
        else fields[key] = emptyValue(field);
      } else {
        fields[key] = this.decode(fields[key], field, {
          path: at,
          goPath: named ? `${goPath}.${key}` : goPath,
          struct: owner,
          goType: named ? (structure?.get(key)?.type ?? "") : entryType,
        });
      }
    }
  }
}

function quantity(value: unknown): unknown {
  try {
    return formatQuantity(parseQuantity(value as string));
  } catch (cause) {
    throw new DecodingError(quantityProblem, { cause });
  }
}

function text(value: string, schema: Schema): string {
  if (schema.format !== "date-time" && schema.format !== "byte") return value;
  try {
    if (schema.format === "byte") return storedBytes(value);
    return storedTime(value, fullNameOf(schema)?.endsWith(".MicroTime") ?? false);
  } catch (cause) {
    throw new DecodingError((cause as Error).message, { cause });
  }
}

/** What a `null` in a list or map stands for. */
function emptyValue(schema: Schema): unknown {
  if (schema === quantitySchema) return "0";
  if (schema.format === "date-time") return null;
  const empty: Record<string, unknown> = { string: "", integer: 0, number: 0, boolean: false };
  if (schema.type && schema.type in empty) return empty[schema.type];
  return schema.properties ? {} : null;
}

function checkType(value: unknown, schema: Schema, { goPath, struct, goType }: Place): void {
  const actual = Array.isArray(value) ? "array" : isNumber(value) ? "number" : typeof value;
  const found = actual === "boolean" ? "bool" : actual;
  const refusal = (shown: string, type: string) =>
    new DecodingError(
      `json: cannot unmarshal ${shown} into Go struct field ${struct}${goPath} of type ${type}`,
    );
  if (schema.format === "int-or-string") {
    if (actual === "string") return;
    if (actual !== "number") throw refusal(found, "int32");
    if (!isInteger(value, "int32")) throw refusal(`number ${String(value)}`, "int32");
    return;
  }
  if (!schema.type) return;
  const wanted = schema.type === "integer" ? "number" : schema.type;
  const type = goType || (schema.format === "int64" ? "int64" : goTypes[schema.type]) || "";
  if (actual !== wanted) throw refusal(found, schema.format === "date-time" ? "string" : type);
  if (schema.type === "integer" && !isInteger(value, type))
    throw refusal(`number ${String(value)}`, type);
}

function isInteger(value: unknown, type: string): boolean {
  if (!isInt64(value)) return false;
  return type !== "int32" || (value >= -(2 ** 31) && value < 2 ** 31);
}
