import { type FunctionResponse } from "./function-response.ts";
import { sendStream } from "./send-stream.ts";
import { isWebResponse, sendWebResponse } from "./web/send-response.ts";
import {
  isResponse,
  type PlainResponse,
  toNativeResponse,
  toPlainResponse,
} from "./web/response.ts";

/**
 * Answers with what a handler returned. Falsy values are an empty body; text goes out without a
 * content type of our making; bytes, streams and `Response` as they are; anything else as JSON. Only
 * streams take time, and return a promise.
 */
export function sendResult(response: FunctionResponse, value: unknown): Promise<void> | undefined {
  // The handler has answered by itself, or is about to by a stream.
  if (response.writableEnded || response.headersSent) return undefined;
  if (response.answersLater || isPipedInto(response)) return undefined;
  if (!value) return ended(response);
  if (typeof value === "string") return ended(response, value);
  if (typeof value !== "object") {
    if (typeof value === "function" || typeof value === "symbol")
      throw new TypeError(`the handler returned a ${typeof value}, which cannot be sent`);
    return ended(response, String(value));
  }
  const bytes = bytesOf(value);
  if (bytes) {
    if (!response.hasHeader("content-type")) response.type("bin");
    return ended(response, bytes);
  }
  if (isResponse(value)) {
    const plain = toPlainResponse(value);
    return plain
      ? sendPlainResponse(response, plain)
      : sendWebResponse(response, toNativeResponse(value));
  }
  if (isReadable(value)) {
    if (!response.hasHeader("content-type")) response.type("bin");
    return sendStream(response, value);
  }
  if (isWebResponse(value)) return sendWebResponse(response, value);
  return sendJson(response, value);
}

const jsonType = ["content-type", "application/json; charset=utf-8"];

function sendJson(response: FunctionResponse, value: object): undefined {
  const text: string | undefined = JSON.stringify(value);
  const hasType = text === undefined || response.hasHeader("content-type");
  response.endWith(hasType ? [] : jsonType, text);
  return undefined;
}

function ended(response: FunctionResponse, body?: string | Uint8Array): undefined {
  response.end(body);
  return undefined;
}

function bytesOf(value: object): Uint8Array | undefined {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : undefined;
}

/** `pipe` listens for its end: the only trace of a stream that has not written anything yet. */
function isPipedInto(response: FunctionResponse): boolean {
  return response.listenerCount("unpipe") > 0;
}

/** Node.js' and the web's streams, and generators. */
function isReadable(value: object): value is AsyncIterable<Uint8Array | string> {
  return Symbol.asyncIterator in value;
}

function sendPlainResponse(
  response: FunctionResponse,
  { status, statusText, headers, body }: PlainResponse,
): undefined {
  response.statusCode = status;
  if (statusText) response.statusMessage = statusText;
  const flat: string[] = [];
  for (const [name, value] of headers)
    if (body === null || !framing.has(name)) flat.push(name, value);
  response.endWith(flat, body ?? undefined);
  return undefined;
}

/** Node.js knows how long the body is. */
const framing = new Set(["content-length", "transfer-encoding"]);
