import { isUtf8 } from "node:buffer";
import { JsonText, membersOf } from "@spry/kube";
import { bounds } from "../bounds.ts";

/** An event, whatever format it came in: context attributes as strings, data as bytes (CloudEvents 1.0.2). */
export interface CloudEvent {
  /** `specversion`, `id`, `source` and `type` among them; `datacontenttype` says what the data is. */
  attributes: Readonly<Record<string, string>>;
  /** Empty: without data. */
  data: Uint8Array;
}

/** The request does not contain an event; the message is for the client. */
export class NotAnEventError extends Error {
  override readonly name = "NotAnEventError";
  readonly status: number;
  constructor(message: string, status = 400) {
    super(message);
    this.status = status;
  }
}

const attributeName = /^[a-z0-9]{1,64}$/;
/** The part of RFC 3986 that excludes spaces, quotes and brackets. */
const uriReference = /^[^\s"<>\\^`{|}]+$/;
/** RFC 3339. */
const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/i;

/**
 * Checks what the specification requires of every event.
 * @throws NotAnEventError in the words of the CloudEvents SDK for Go, which the original answers with
 */
export function checked(event: CloudEvent): CloudEvent {
  const { attributes, data } = event;
  const { specversion, id = "", source = "", type = "", time: at } = attributes;
  const problems: string[] = [];
  if (specversion !== "1.0") problems.push(`specversion: unknown : "${short(specversion ?? "")}"`);
  if (id.trim() === "") problems.push("id: MUST be a non-empty string");
  if (source.trim() === "") problems.push("source: REQUIRED");
  else if (!uriReference.test(source)) problems.push("source: MUST be a URI-reference");
  if (type.trim() === "") problems.push("type: MUST be a non-empty string");
  if (at !== undefined && (!time.test(at) || Number.isNaN(Date.parse(at))))
    problems.push("time: MUST be a timestamp of RFC 3339");
  for (const [name, value] of Object.entries({ id, source, type }))
    if (value.length > bounds.nameLength)
      problems.push(`${name}: has more than ${bounds.nameLength} characters`);
  let bytes = 0;
  const entries = Object.entries(attributes);
  for (const [name, value] of entries) {
    if (!attributeName.test(name))
      problems.push(`${short(name)}: attribute names are lower-case letters and digits`);
    // Controls are not part of the type String (CloudEvents, section 3.3).
    // oxlint-disable-next-line no-control-regex -- they are what is looked for
    if (/[\u0000-\u001f\u007f-\u009f]/.test(value))
      problems.push(`${short(name)}: contains control characters`);
    if (!value.isWellFormed()) problems.push(`${short(name)}: ${unpaired}`);
    // It becomes a header of the request to the sink, which carries nothing else.
    if (name === "datacontenttype" && !/^[\x20-\x7e]*$/.test(value))
      problems.push(`${name}: contains characters outside of ASCII`);
    const length = Buffer.byteLength(value);
    if (length > bounds.attributeBytes)
      problems.push(`${short(name)}: has more than ${bounds.attributeBytes} bytes`);
    bytes += name.length + length;
  }
  if (entries.length > bounds.attributes)
    problems.push(`attributes: more than ${bounds.attributes}`);
  if (bytes > bounds.allAttributeBytes)
    problems.push(`attributes: more than ${bounds.allAttributeBytes} bytes`);
  if (problems.length > 0) throw new NotAnEventError(problems.slice(0, 10).join("\n"));
  if (data.length > bounds.eventBytes)
    throw new NotAnEventError(`the event has more than ${bounds.eventBytes} bytes`, 413);
  return event;
}

const unpaired = "contains a half of a surrogate pair, which UTF-8 cannot encode";
const short = (text: string) => text.slice(0, 100);

/** Deeper JSON is not read or written as such: `JSON.stringify` overflows the stack where `JSON.parse` does not. */
const maxDepth = 500;

/** Whether a text of JSON has arrays and objects in each other, more than that many; found without parsing it. */
export function isTooDeep(json: Uint8Array): boolean {
  let depth = 0;
  let isInText = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (isInText) {
      if (byte === 0x5c) at++;
      else if (byte === 0x22) isInText = false;
    } else if (byte === 0x22) isInText = true;
    // `[` and `{`, `]` and `}`.
    else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > maxDepth) return true;
    } else if (byte === 0x5d || byte === 0x7d) depth--;
  }
  return false;
}

export const tooDeep = `the body is nested in more than ${maxDepth} levels`;

/**
 * The JSON format (CloudEvents JSON Event Format 1.0.2), for `stringifyJson`: JSON data is a `JsonText`. What is not valid, or nested
 * too deeply, is base64, as all bytes that are not text.
 */
export function toJson({ attributes, data }: CloudEvent): Record<string, unknown> {
  if (data.length === 0) return { ...attributes };
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const type = attributes["datacontenttype"];
  const isText = /^text\//i.test(type ?? "");
  if ((isText || isJson(type)) && isUtf8(bytes)) {
    const text = bytes.toString("utf8");
    if (isText) return { ...attributes, data: text };
    if (!isTooDeep(data) && isValid(text)) return { ...attributes, data: new JsonText(text) };
  }
  return { ...attributes, data_base64: bytes.toString("base64") };
}

function isValid(json: string): boolean {
  try {
    JSON.parse(json);
    return true;
  } catch {
    return false;
  }
}

/** Also without a type of its own: JSON is the default then. */
export function isJson(contentType: string | undefined): boolean {
  return contentType === undefined || /^[^;]*[/+]json\s*(?:;|$)/i.test(contentType);
}

/** Of the specification itself, all of them texts. */
const ownAttributes = new Set([
  "specversion",
  "id",
  "source",
  "type",
  "time",
  "subject",
  "dataschema",
  "datacontenttype",
]);
/** RFC 2046, as far as the names: a type and a subtype, parameters behind them. */
const mediaType = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+\s*(?:;|$)/;
const optional: ReadonlyMap<string, { isGood: (value: string) => boolean; rule: string }> = new Map(
  [
    ["subject", { isGood: (value) => value !== "", rule: "be a non-empty string" }],
    [
      "dataschema",
      {
        isGood: (value) => uriReference.test(value),
        rule: "adhere to the format specified in RFC 3986",
      },
    ],
    [
      "datacontenttype",
      {
        isGood: (value) => mediaType.test(value),
        rule: "adhere to the format specified in RFC 2046",
      },
    ],
  ],
);

/**
 * An event of the JSON format, whose text begins at `at`: the data is what is written there, byte for byte.
 * @throws NotAnEventError
 */
export function fromJson(value: unknown, text: string, at = 0): CloudEvent {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new NotAnEventError("the event is not a JSON object");
  const attributes: Record<string, string> = Object.create(null) as Record<string, string>;
  const data: { json?: string; base64?: string } = {};
  const seen = new Set<string>();
  for (const { name, start, end } of membersOf(text, at)) {
    if (seen.has(name)) throw new NotAnEventError(`${short(name)}: the member occurs twice`);
    seen.add(name);
    const written = text.slice(start, end);
    if (name === "data") data.json = written;
    else if (name === "data_base64") data.base64 = written;
    // A member that is null is one that is missing (section 2.2).
    else if (written !== "null") attributes[name] = attributeOf(name, written);
  }
  const bytes = dataOf(data, attributes);
  return checked({ attributes: { ...attributes }, data: bytes });
}

function attributeOf(name: string, written: string): string {
  const isText = written.startsWith('"');
  // An integer as it is written: as a number it would lose digits.
  if (!isText && !/^(?:true|false|-?(?:0|[1-9]\d*))$/.test(written))
    throw new NotAnEventError(`${short(name)}: attributes are strings, integers or booleans`);
  if (!isText && ownAttributes.has(name)) throw new NotAnEventError(`${name}: MUST be a string`);
  const value = isText ? (JSON.parse(written) as string) : written;
  const problem = optional.get(name);
  if (problem && !problem.isGood(value))
    throw new NotAnEventError(`${name}: if present, MUST ${problem.rule}`);
  return value;
}

function dataOf(
  { json, base64 }: { json?: string; base64?: string },
  attributes: Record<string, string>,
): Uint8Array {
  if (base64 !== undefined && base64 !== "null") {
    const text: unknown = JSON.parse(base64);
    const bytes = typeof text === "string" ? Buffer.from(text, "base64") : undefined;
    // What is not part of an encoding would be left out; padding may be missing.
    if (bytes?.toString("base64").replace(/=+$/, "") !== String(text).replace(/={1,2}$/, ""))
      throw new NotAnEventError("data_base64: not valid base64");
    if (json !== undefined) throw new NotAnEventError("data and data_base64 must not both be set");
    return bytes ?? new Uint8Array();
  }
  if (json === undefined) return new Uint8Array();
  if (json.startsWith('"') && !isJson(attributes["datacontenttype"])) {
    const text = JSON.parse(json) as string;
    if (!text.isWellFormed()) throw new NotAnEventError(`data: ${unpaired}`);
    return Buffer.from(text);
  }
  attributes["datacontenttype"] ??= "application/json";
  return Buffer.from(json);
}
