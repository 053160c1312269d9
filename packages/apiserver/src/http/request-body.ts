import { loadYaml, StatusError } from "@spry/kube";
import { badRequest } from "../errors.ts";
import { oversizedIn, parseJson } from "../json.ts";
import { scanJson } from "./json-scanner.ts";
import { type HttpRequest } from "./message.ts";
import { mediaTypeOf } from "./negotiation.ts";
import { isLarge, turn } from "../turns.ts";
import { decodeProtobuf, protobufMediaType } from "../protobuf/protobuf.ts";

/** As etcd-backed API servers: 3 MiB of body. */
export const maxBodyBytes = 3 * 1024 * 1024;
const maxDepth = 256;
/** YAML aliases can say in a line what takes gigabytes to write down. */
const maxNodes = 500_000;
/**
 * Of all maps together. No real cluster keeps an object of so many fields either: with their managers it is more than the 1.5 MiB
 * that etcd takes.
 */
const maxFields = 100_000;

/** The body as text; throws a `StatusError` 413 when it is too long. */
export async function readText(request: HttpRequest): Promise<string> {
  if (Number(request.headers.get("content-length") ?? 0) > maxBodyBytes) throw tooLarge();
  const text = await request.text();
  if (text.length > maxBodyBytes) throw tooLarge();
  return text;
}

/** How a body that cannot be read is reported: `problem` in the words of Go's decoders, and the text itself. */
export type Wording = (problem: string, text: string) => string;

export interface Body {
  /** Undefined when there is no body. */
  object: Record<string, unknown> | undefined;
  /** Paths of keys that an object names twice; the last one counts. */
  duplicates: string[];
  /** Its work takes turns with that of others. */
  large: boolean;
}

/** The object in the body, whatever its media type. `null` is read as an object without fields. */
export async function readBody(request: HttpRequest, wording?: Wording): Promise<Body> {
  const mediaType = mediaTypeOf(request);
  if (mediaType === protobufMediaType) {
    const bytes = new Uint8Array(await request.arrayBuffer());
    if (bytes.length > maxBodyBytes) throw tooLarge();
    const large = isLarge(bytes);
    if (large) await turn();
    const object = bytes.length === 0 ? undefined : decodeProtobuf(bytes);
    checkShape(object);
    return { object, duplicates: [], large };
  }
  if (!bodyTypes.includes(mediaType)) {
    throw new StatusError({
      code: 415,
      message: `the body of the request was in an unknown format - accepted media types include: ${bodyTypes.join(", ")}, ${protobufMediaType}`,
    });
  }
  const text = await readText(request);
  if (text === "") return { object: undefined, duplicates: [], large: false };
  const large = isLarge(text);
  if (large) await turn();
  const object = parseObject(text, mediaType, wording);
  if (large) await turn();
  const duplicates = mediaType.endsWith("yaml") ? [] : scanJson(text).duplicates;
  return { object, duplicates, large };
}

/** The same without a look for duplicates. */
export async function readObject(
  request: HttpRequest,
  wording?: Wording,
): Promise<Record<string, unknown> | undefined> {
  return (await readBody(request, wording)).object;
}

const bodyTypes = ["application/json", "application/yaml"];
const plainWording: Wording = (problem) => `the body cannot be read: ${problem}`;

/** A JSON or YAML document; a `StatusError` 400 says why it cannot be read. */
export function parseDocument(
  text: string,
  mediaType: string,
  wording: Wording = plainWording,
): unknown {
  const yaml = mediaType.endsWith("yaml") && !text.trimStart().startsWith("{");
  let value: unknown;
  try {
    value = yaml ? loadYaml(text) : parseJson(text);
  } catch (cause) {
    const problem = yaml ? yamlProblem(cause) : scanJson(text).problem;
    throw badRequest(wording(problem ?? String(cause), text), { cause });
  }
  checkShape(value, (found) => {
    const problem = yaml
      ? `json: unsupported value: ${found > 0 ? "+Inf" : found < 0 ? "-Inf" : "NaN"}`
      : `json: cannot unmarshal number ${oversizedIn(text)} into Go value of type float64`;
    return badRequest(wording(problem, text));
  });
  return value;
}

const goTypeName = String.raw`struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`;

/** The same, for bodies that must be an object. */
export function parseObject(
  text: string,
  mediaType: string,
  wording: Wording = plainWording,
): Record<string, unknown> {
  const value = parseDocument(text, mediaType, wording);
  if (value === null) return {};
  if (typeof value === "object" && !Array.isArray(value)) return value as Record<string, unknown>;
  const found = Array.isArray(value) ? "array" : typeof value;
  const shown = found === "boolean" ? "bool" : found;
  throw badRequest(
    wording(`json: cannot unmarshal ${shown} into Go value of type ${goTypeName}`, text),
  );
}

function yamlProblem(cause: unknown): string {
  const { reason, mark } = cause as { reason?: string; mark?: { line: number } };
  if (reason === undefined) return String(cause);
  const explanation = reason.startsWith("unexpected end of the stream within a flow")
    ? "did not find expected node content"
    : reason;
  return `yaml: line ${(mark?.line ?? 0) + 1}: ${explanation}`;
}

/**
 * Throws a `StatusError` 400 for a value of more depth, or more values, than a body may have, or `oversized` for a number that is
 * not finite; 413 for one of too many fields.
 */
export function checkShape(
  root: unknown,
  oversized: (found: number) => StatusError = tooLargeNumber,
): void {
  let nodes = 0;
  let fields = 0;
  const visit = (value: unknown, depth: number, isMetadata = false): void => {
    if (typeof value !== "object" || value === null) {
      if (typeof value === "number" && !Number.isFinite(value)) throw oversized(value);
      return;
    }
    if (depth > maxDepth) throw badRequest(`the body is nested deeper than ${maxDepth} levels`);
    if (++nodes > maxNodes) throw badRequest(`the body has more than ${maxNodes} values`);
    if (Array.isArray(value)) for (const item of value) visit(item, depth + 1);
    else visitFields(value as Record<string, unknown>, depth, isMetadata);
  };
  const visitFields = (map: Record<string, unknown>, depth: number, isMetadata: boolean) => {
    const keys = Object.keys(map);
    fields += keys.length;
    if (fields > maxFields) throw tooManyFields();
    for (const key of keys) {
      // Assigning to it would change an object's prototype, not its data.
      if (key === "__proto__") throw badRequest('the body has a field named "__proto__"');
      const before = fields;
      visit(map[key], depth + 1, depth === 0 && key === "metadata");
      // They name the others again.
      if (isMetadata && key === "managedFields") fields = before;
    }
  };
  visit(root, 0);
}

function tooLargeNumber(): StatusError {
  return badRequest("the object has a number that is too large for 64 bits (IEEE 754)");
}

function tooManyFields(): StatusError {
  return new StatusError({
    code: 413,
    message: `Request entity too large: the object has more than ${maxFields} fields, the limit: keep its content in fewer, larger values`,
  });
}

function tooLarge(): StatusError {
  return new StatusError({
    code: 413,
    message: `Request entity too large: limit is ${maxBodyBytes}`,
  });
}
