import { badRequest } from "../errors.ts";
import { formatTimestamp, parseTimestamp } from "./timestamp.ts";
import { parseJson } from "../json.ts";

type Fields = Record<string, unknown>;

/** A message that has a JSON form of its own. */
export interface WellKnownType {
  /** Its fields, written as in the generated messages. */
  fields: string;
  /** From its fields; undefined when the JSON leaves it out. */
  toJson(fields: Fields): unknown;
  /** To its fields; undefined for an empty message. The value is undefined where JSON has none. */
  fromJson(value: unknown): Fields | undefined;
}

const schema = "apiextensions/v1.JSONSchemaProps";

/** By the names that the generator gives them. */
export const wellKnownTypes = new Map<string, WellKnownType>([
  ["time", timeType(false)],
  ["microTime", timeType(true)],
  [
    "quantity",
    {
      fields: "1 string string",
      toJson: ({ string }) => string ?? "0",
      fromJson: (value) => ({ string: String(value ?? "0") }),
    },
  ],
  [
    "intOrString",
    {
      fields: "1 type !int64;2 intVal !int32;3 strVal !string",
      toJson: ({ type = 0, intVal = 0, strVal = "" }) => (type === 0 ? intVal : strVal),
      fromJson: (value) =>
        typeof value === "string" ? { type: 1, strVal: value } : { type: 0, intVal: value },
    },
  ],
  [
    "json",
    {
      fields: "1 raw *string",
      toJson: ({ raw }) => parseRaw(raw as string | undefined),
      fromJson: (value) => (value === undefined ? undefined : { raw: JSON.stringify(value) }),
    },
  ],
  [
    "stringList",
    {
      fields: "1 items []string",
      toJson: ({ items = [] }) => items,
      fromJson: (items) => ({ items }),
    },
  ],
  [
    "schemaOrBool",
    {
      fields: `1 allows !bool;2 schema *${schema}`,
      toJson: ({ allows = false, schema }) => schema ?? allows,
      fromJson: (value) =>
        typeof value === "boolean" ? { allows: value } : { allows: true, schema: value },
    },
  ],
  [
    "schemaOrArray",
    {
      fields: `1 schema *${schema};2 schemas []${schema}`,
      toJson: ({ schema, schemas }) => schemas ?? schema,
      fromJson: (value) => (Array.isArray(value) ? { schemas: value } : { schema: value }),
    },
  ],
  [
    "schemaOrStrings",
    {
      fields: `1 schema *${schema};2 property []string`,
      toJson: ({ schema, property }) => property ?? schema,
      fromJson: (value) => (Array.isArray(value) ? { property: value } : { schema: value }),
    },
  ],
]);

/** `metav1.Time` has whole seconds, `metav1.MicroTime` microseconds. Go's zero time is empty. */
function timeType(micro: boolean): WellKnownType {
  return {
    fields: "1 seconds !int64;2 nanos !int32",
    toJson({ seconds, nanos }) {
      if (seconds === undefined && nanos === undefined) return undefined;
      return formatTimestamp(Number(seconds ?? 0), micro ? Number(nanos ?? 0) : undefined);
    },
    fromJson: (value) => parseTimestamp(String(value ?? ""), micro),
  };
}

function parseRaw(raw: string | undefined): unknown {
  if (!raw) return undefined;
  try {
    return parseJson(raw);
  } catch (cause) {
    throw badRequest("the protobuf body holds a raw value that is not JSON", { cause });
  }
}
