import { essenceOf } from "./media-type.ts";
import { type FunctionRequest } from "./function-request.ts";
import { parseJson } from "./request-body.ts";
import { isRequestError, RequestError } from "./request-error.ts";

/** Attributes and data of an event: CloudEvents 1.0 (and 0.3), HTTP protocol binding. */
export interface CloudEvent {
  attributes: Record<string, unknown>;
  data: unknown;
}

const structuredType = "application/cloudevents+json";
const batchType = "application/cloudevents-batch+json";
const namePattern = /^[a-z0-9]{1,64}$/;

/**
 * The CloudEvent in a request whose body has been parsed: structured (the body is the event) or
 * binary (attributes in `ce-*` headers). Undefined when it is none; a batch is none, but a list.
 * Throws a `RequestError` for one that is malformed.
 */
export function readCloudEvent(request: FunctionRequest, body: unknown): CloudEvent | undefined {
  const { headers } = request;
  const contentType = headers["content-type"];
  if (contentType?.toLowerCase().includes("cloudevents")) {
    const essence = essenceOf(contentType);
    if (essence === structuredType) return readStructured(body);
    if (essence === batchType) return checkBatch(body);
  }
  // Two property reads: most requests are not events.
  const hasBoth = headers["ce-type"] !== undefined && headers["ce-source"] !== undefined;
  if (!hasBoth && headers["ce-specversion"] === undefined) return undefined;
  const attributes: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith("ce-") || typeof value !== "string") continue;
    if (namePattern.test(name.slice(3))) attributes[name.slice(3)] = decode(value);
  }
  if (contentType === undefined) return checked({ attributes, data: untyped(request, body) });
  attributes["datacontenttype"] = contentType;
  return checked({ attributes, data: body });
}

/** Without a type it is JSON, as in structured events, if it is; else the bytes. */
function untyped(request: FunctionRequest, body: unknown): unknown {
  if (!Buffer.isBuffer(body)) return body;
  try {
    return parseJson(body, request);
  } catch (error) {
    if (isRequestError(error) && error.status === 400) return body;
    throw error;
  }
}

function readStructured(body: unknown): CloudEvent {
  if (body === null || typeof body !== "object" || Array.isArray(body))
    throw new RequestError(400, "the CloudEvent is not a JSON object");
  const { data, data_base64: base64, ...attributes } = body as Record<string, unknown>;
  if (base64 === undefined || base64 === null) return checked({ attributes, data });
  if (typeof base64 !== "string" || !isBase64(base64))
    throw new RequestError(400, "the CloudEvent's data_base64 is not valid base64");
  return checked({ attributes, data: Buffer.from(base64, "base64") });
}

/** `Buffer` skips what is none. */
function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

function checkBatch(body: unknown): undefined {
  if (!Array.isArray(body))
    throw new RequestError(400, "the batch of CloudEvents is not a JSON array");
  for (const event of body) readStructured(event);
}

function checked(event: CloudEvent): CloudEvent {
  for (const name of ["id", "source", "type"]) {
    const value = event.attributes[name];
    if (typeof value !== "string" || value === "")
      throw new RequestError(400, `the CloudEvent has no ${name}`);
  }
  const { specversion: version = "1.0" } = event.attributes;
  if (version !== "1.0" && version !== "0.3")
    throw new RequestError(400, "the CloudEvent's specversion is neither 1.0 nor 0.3");
  return event;
}

/** Header values carry other characters percent-encoded (section 3.1.3.2 of the binding). */
function decode(value: string): string {
  if (!value.includes("%")) return value;
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
