/** Responses of the web's kind: Node.js' own, its subclasses, and those of polyfills. */
import { type FunctionResponse } from "../function-response.ts";
import { sendStream, sendWebStream } from "../send-stream.ts";

interface WebHeaders extends Iterable<[name: string, value: string]> {
  get: (name: string) => string | null;
  getSetCookie?: () => string[];
  raw?: () => Record<string, string[]>;
}

/** The members that an answer needs; `Response` has them, whatever class it is. */
interface WebResponse {
  status: number;
  statusText?: string;
  url?: string;
  headers: WebHeaders;
  body?: unknown;
  arrayBuffer?: () => Promise<ArrayBuffer>;
}

/**
 * By its members, as there are many such classes; `headers` of data that looks similar are a plain object. Not by
 * `instanceof`: touching the global loads the whole of fetch, which most Functions never use.
 */
export function isWebResponse(value: object): value is WebResponse {
  const { status, headers } = value as Partial<WebResponse>;
  if (typeof status !== "number" || headers === null || typeof headers !== "object") return false;
  if (typeof headers.get !== "function" || !(Symbol.iterator in headers)) return false;
  return typeof (value as Partial<WebResponse>).arrayBuffer === "function" || hasBody(value);
}

function hasBody(value: object): boolean {
  if (!("body" in value)) return false;
  const { body } = value;
  if (body === null || typeof body === "string" || body instanceof Uint8Array) return true;
  return typeof body === "object" && ("getReader" in body || Symbol.asyncIterator in body);
}

/** Answers with the web's `Response`, in whatever class; rejects if its body cannot be read. */
export async function sendWebResponse(
  response: FunctionResponse,
  value: WebResponse,
): Promise<void> {
  response.status(value.status);
  if (value.statusText) response.statusMessage = value.statusText;
  const isPassedOn = Boolean(value.url);
  for (const [name, each] of fieldsOf(value.headers))
    if (!isPassedOn || !isOfConnection(name, value)) response.appendHeader(name, each);
  // A client that listens to events waits for the head, which would come with the first of them.
  if (value.headers.get("content-type")?.startsWith("text/event-stream")) response.flushHeaders();
  await sendBody(response, value);
}

/** Most polyfills list `Set-Cookie` field by field, as the standard does; node-fetch joins equal fields, except in `raw()`. */
function* fieldsOf(headers: WebHeaders): Generator<[name: string, value: string]> {
  if (!headers.raw || headers.getSetCookie) return yield* headers;
  for (const [name, values] of Object.entries(headers.raw()))
    for (const value of values) yield [name, value];
}

/** Polyfills have Node.js' streams as bodies, or bytes, or nothing before they are asked for them. */
function sendBody(response: FunctionResponse, value: WebResponse): Promise<void> | void {
  const { body } = value;
  if (body === null) return void response.end();
  if (typeof body === "object" && "getReader" in body)
    return sendWebStream(response, body as ReadableStream);
  if (typeof body === "object" && Symbol.asyncIterator in body)
    return sendStream(response, body as AsyncIterable<Uint8Array>);
  if (typeof body === "string" || body instanceof Uint8Array) return void response.end(body);
  return value.arrayBuffer?.().then((bytes) => void response.end(new Uint8Array(bytes)));
}

/**
 * Of an answer that `fetch` got: what is between that server and us. A body's coding and length are, too, as
 * `fetch` has decoded it.
 */
function isOfConnection(name: string, { headers, body }: WebResponse): boolean {
  if (hopByHop.has(name)) return true;
  if (!body || (name !== "content-encoding" && name !== "content-length")) return false;
  const codings = headers
    .get("content-encoding")
    ?.toLowerCase()
    .split(/\s*,\s*/);
  return codings?.every((coding) => decodedByFetch.has(coding)) ?? false;
}

const hopByHop = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding"]);
const decodedByFetch = new Set(["gzip", "x-gzip", "deflate", "br", "zstd"]);
