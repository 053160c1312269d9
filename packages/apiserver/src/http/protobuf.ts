import { readFileSync } from "node:fs";
import { badRequest } from "../errors.ts";
import { builtin, resolve, type Schema } from "../schema/schema.ts";

/**
 * Reads the protobuf form in which some clients write built-in kinds (kubectl since 1.33). Answers are
 * JSON always. The wire format is proto2's; schemas say what a field holds, a generated table which
 * number it has.
 */
export const protobufMediaType = "application/vnd.kubernetes.protobuf";

type JsonObject = Record<string, unknown>;
type FieldNumbers = Record<string, Record<string, string>>;

/** Before the message: the four bytes "k8s" and 0, then a `runtime.Unknown` around it. */
const magic = [0x6b, 0x38, 0x73, 0];
const maxDepth = 64;

let table: FieldNumbers | undefined;

function fieldNumbers(): FieldNumbers {
  const file = new URL("../generated/kube-protobuf.json", import.meta.url);
  return (table ??= JSON.parse(readFileSync(file, "utf8")) as FieldNumbers);
}

/** The object in a protobuf body; throws a `StatusError` 400 when it is not one that can be read. */
export function parseProtobuf(bytes: Uint8Array): JsonObject {
  if (!magic.every((byte, index) => bytes[index] === byte)) {
    throw badRequest("the body does not begin like a Kubernetes protobuf message");
  }
  const envelope = new Map(readFields(bytes.subarray(magic.length)));
  const typeMeta = new Map(readFields(bytesOf(envelope.get(1))));
  const apiVersion = textOf(typeMeta.get(1));
  const kind = textOf(typeMeta.get(2));
  const name = definitionOf(apiVersion, kind);
  if (!name) throw badRequest(`no protobuf form of ${apiVersion} ${kind} is known here: send JSON`);
  return { apiVersion, kind, ...decodeMessage(bytesOf(envelope.get(2)), name, 0) };
}

function definitionOf(apiVersion: string, kind: string): string | undefined {
  const slash = apiVersion.indexOf("/");
  const group = slash < 0 ? "" : apiVersion.slice(0, slash);
  const version = apiVersion.slice(slash + 1);
  const served = builtin.groupVersions
    .find((each) => each.group === group && each.version === version)
    ?.resources.find((each) => each.kind === kind)?.definition;
  const base = (group || "core").split(".")[0];
  const meta =
    kind === "DeleteOptions" ? "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions" : undefined;
  const name = served ?? meta ?? `io.k8s.api.${base}.${version}.${kind}`;
  return name in fieldNumbers() ? name : undefined;
}

type WireValue = bigint | number | Uint8Array;

function* readFields(bytes: Uint8Array): Generator<[number, WireValue]> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) break;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    throw badRequest("the protobuf message has a number that does not end");
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const number = tag >>> 3;
    const wireType = tag & 7;
    if (wireType === 0) yield [number, varint()];
    else {
      const length =
        wireType === 1 ? 8 : wireType === 5 ? 4 : wireType === 2 ? Number(varint()) : -1;
      if (length < 0 || at + length > bytes.length)
        throw badRequest("the protobuf message is cut off");
      if (wireType === 1) yield [number, view.getFloat64(at, true)];
      else if (wireType === 5) yield [number, view.getFloat32(at, true)];
      else yield [number, bytes.subarray(at, at + length)];
      at += length;
    }
  }
}

/** `name` is that of a definition, or of a struct whose fields are written inline into `schema`'s. */
function decodeMessage(
  bytes: Uint8Array,
  name: string,
  depth: number,
  schema: Schema = builtin.definitions[name] ?? {},
): JsonObject {
  if (depth > maxDepth)
    throw badRequest(`the protobuf message is nested deeper than ${maxDepth} levels`);
  const numbers = fieldNumbers()[name] ?? {};
  const result: JsonObject = {};
  for (const [number, value] of readFields(bytes)) {
    const field = numbers[number];
    if (field === undefined) continue;
    if (field.startsWith(">")) {
      Object.assign(result, decodeMessage(bytesOf(value), field.slice(1), depth + 1, schema));
      continue;
    }
    const json = field.startsWith("?") ? field.slice(1) : field;
    const fieldSchema = schema.properties?.[json];
    if (!fieldSchema) continue;
    addField(result, json, value, fieldSchema, depth);
    // A zero that is no pointer stands for a field that nobody set.
    if (json === field && isZero(result[json])) delete result[json];
    if (result[json] === undefined) delete result[json];
  }
  return result;
}

function addField(
  result: JsonObject,
  name: string,
  value: WireValue,
  declared: Schema,
  depth: number,
): void {
  const schema = resolve(declared);
  if (schema.type === "array" && schema.items) {
    const list = (result[name] ??= []) as unknown[];
    list.push(decodeValue(value, schema.items, depth));
  } else if (schema.type === "object" && typeof schema.additionalProperties === "object") {
    const map = (result[name] ??= {}) as JsonObject;
    const entry = new Map(readFields(bytesOf(value)));
    const key = textOf(entry.get(1));
    if (key !== "__proto__") {
      map[key] = decodeValue(entry.get(2) ?? new Uint8Array(), schema.additionalProperties, depth);
    }
  } else result[name] = decodeValue(value, declared, depth);
}

const metaV1 = "io.k8s.apimachinery.pkg.apis.meta.v1.";

function decodeValue(value: WireValue, declared: Schema, depth: number): unknown {
  const reference = declared.$ref;
  const schema = resolve(declared);
  switch (reference) {
    case `${metaV1}Time`:
    case `${metaV1}MicroTime`:
      return timeOf(bytesOf(value), reference.endsWith("MicroTime"));
    case "io.k8s.apimachinery.pkg.api.resource.Quantity":
      return textOf(new Map(readFields(bytesOf(value))).get(1));
    case "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
      const fields = new Map(readFields(bytesOf(value)));
      return fields.get(1) ? textOf(fields.get(3)) : Number(fields.get(2) ?? 0);
    }
    case `${metaV1}FieldsV1`:
    case "io.k8s.apimachinery.pkg.runtime.RawExtension":
      return rawJson(bytesOf(new Map(readFields(bytesOf(value))).get(1)));
  }
  if (reference) return decodeMessage(bytesOf(value), reference, depth + 1);
  switch (schema.type) {
    case "string":
      return schema.format === "byte"
        ? Buffer.from(bytesOf(value)).toString("base64")
        : textOf(value);
    case "boolean":
      return value !== 0n;
    case "integer":
    case "number":
      return Number(value);
    default:
      throw badRequest(
        "the protobuf message holds a field whose type is not known here: send JSON",
      );
  }
}

function timeOf(bytes: Uint8Array, micro: boolean): string | undefined {
  const fields = new Map(readFields(bytes));
  const milliseconds = Number(fields.get(1) ?? 0) * 1000;
  // Go's zero time is in the year 1.
  if (milliseconds <= 0) return undefined;
  if (milliseconds > 8.64e15) throw badRequest("the protobuf message holds a time out of range");
  const text = new Date(milliseconds).toISOString().slice(0, 19);
  const micros = String(Math.trunc(Number(fields.get(2) ?? 0) / 1000)).padStart(6, "0");
  return micro ? `${text}.${micros}Z` : `${text}Z`;
}

function rawJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(Buffer.from(bytes).toString()) as unknown;
  } catch (cause) {
    throw badRequest("the protobuf message holds JSON that cannot be read", { cause });
  }
}

function isZero(value: unknown): boolean {
  return value === "" || value === 0 || value === false;
}

function bytesOf(value: WireValue | undefined): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array();
}

function textOf(value: WireValue | undefined): string {
  return Buffer.from(bytesOf(value)).toString("utf8");
}
