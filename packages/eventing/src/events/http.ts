import { isUtf8 } from "node:buffer";
import { type IncomingHttpHeaders } from "node:http";
import { elementsOf } from "@spry/kube";
import { bounds } from "../bounds.ts";
import {
  checked,
  type CloudEvent,
  fromJson,
  isTooDeep,
  NotAnEventError,
  tooDeep,
} from "./cloud-event.ts";

/** What encodes an event in a request (HTTP Protocol Binding 1.0.2, section 3). */
type Mode = "structured" | "batch" | "binary";

function modeOf(headers: IncomingHttpHeaders): Mode {
  const type = headers["content-type"] ?? "";
  const [media = ""] = type.toLowerCase().split(";");
  const format = media.trim();
  if (format.startsWith("application/cloudevents-batch")) {
    if (format !== "application/cloudevents-batch+json") throw unsupported(format);
    return "batch";
  }
  if (format.startsWith("application/cloudevents")) {
    if (format !== "application/cloudevents+json") throw unsupported(format);
    return "structured";
  }
  if (headers["ce-specversion"] !== undefined) return "binary";
  throw new NotAnEventError(
    "unknown Message encoding: send a CloudEvent, with the header ce-specversion or the content type application/cloudevents+json",
  );
}

/** W3C Trace Context, section 3.2; later versions may have more behind it. Others' are not passed on. */
const traceParent = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(?:-[\x21-\x7e]{1,100})?$/;

const unsupported = (format: string) =>
  new NotAnEventError(
    `unknown Message encoding: the event format ${format.slice(0, 100)} is not supported; send JSON`,
  );

/** How many bytes the body of such a request may have; decided before it is read. */
export function maxBodyBytes(headers: IncomingHttpHeaders): number {
  return modeOf(headers) === "batch" ? bounds.batchBytes : 2 * bounds.eventBytes;
}

/**
 * The events of a request.
 * @throws NotAnEventError
 */
export function eventsOf(headers: IncomingHttpHeaders, body: Buffer): CloudEvent[] {
  const mode = modeOf(headers);
  const trace = headers["traceparent"];
  const traced = (event: CloudEvent): CloudEvent =>
    typeof trace !== "string" || !traceParent.test(trace) || "traceparent" in event.attributes
      ? event
      : { ...event, attributes: { ...event.attributes, traceparent: trace } };
  if (mode === "binary") return [traced(binaryEvent(headers, body))];
  const text = textOf(body);
  const value = parse(text);
  if (mode === "structured") return [traced(fromJson(value, text))];
  if (!Array.isArray(value)) throw new NotAnEventError("a batch is a JSON array of events");
  if (value.length > bounds.batchEvents)
    throw new NotAnEventError(`a batch has at most ${bounds.batchEvents} events`, 413);
  const spans = elementsOf(text);
  return value.map((each, index) => {
    try {
      return traced(fromJson(each, text, spans[index]?.start));
    } catch (error) {
      if (!(error instanceof NotAnEventError)) throw error;
      throw new NotAnEventError(`event ${index} of the batch: ${error.message}`, error.status);
    }
  });
}

/** Without a byte order mark, which is not part of a JSON text (RFC 8259 section 8.1). */
export function textOf(body: Buffer): string {
  if (isTooDeep(body)) throw new NotAnEventError(tooDeep);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw new NotAnEventError("the body is not valid JSON in UTF-8");
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new NotAnEventError("the body is not valid JSON in UTF-8");
  }
}

function binaryEvent(headers: IncomingHttpHeaders, body: Buffer): CloudEvent {
  const attributes: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith("ce-") || typeof value !== "string") continue;
    attributes[name.slice("ce-".length)] = decoded(value);
  }
  const type = headers["content-type"];
  if (type !== undefined) attributes["datacontenttype"] = type;
  return checked({ attributes, data: body });
}

/** Values are percent-encoded UTF-8 (section 3.1.3.2). */
function decoded(value: string): string {
  const text = utf8Of(value).replace(/^"((?:[^"\\]|\\.)*)"$/, (_, inner: string) =>
    inner.replace(/\\(.)/g, "$1"),
  );
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (encoded) => {
    try {
      return decodeURIComponent(encoded);
    } catch {
      throw new NotAnEventError("a header's percent-encoding is not valid UTF-8");
    }
  });
}

/** Some clients send UTF-8 as it is: Node.js takes each byte of a header for a character. */
function utf8Of(header: string): string {
  // oxlint-disable-next-line no-control-regex -- ASCII, which is nearly all
  if (/^[\x00-\x7f]*$/.test(header)) return header;
  const bytes = Buffer.from(header, "latin1");
  if (isUtf8(bytes)) return bytes.toString("utf8");
  throw new NotAnEventError("a header is neither percent-encoded nor valid UTF-8");
}

/** Headers, names and values by turns, of a request in binary mode; it may be a span of its own of the event's trace. */
export function binaryHeaders({ attributes }: CloudEvent, span?: string): string[] {
  const headers: string[] = [];
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "datacontenttype") headers.push("content-type", headerSafe(value));
    else headers.push(`ce-${name}`, encoded(value));
  }
  const { traceparent = span, tracestate } = attributes;
  if (traceparent !== undefined) headers.push("traceparent", span ?? headerSafe(traceparent));
  if (tracestate !== undefined) headers.push("tracestate", headerSafe(tracestate));
  return headers;
}

/** What is not printable ASCII, and space, quote and percent (section 3.1.3.2). */
function encoded(value: string): string {
  return value.replace(/[^\x21\x23\x24\x26-\x7e]/gu, (character) =>
    [...Buffer.from(character)]
      .map((byte) => `%${byte.toString(16).padStart(2, "0").toUpperCase()}`)
      .join(""),
  );
}

const headerSafe = (value: string) => value.replace(/[^\x20-\x7e]/g, "");
