import { type Readable } from "node:stream";
import { heldBodyOf } from "./body-budget.ts";
import { decodeText } from "./body-text.ts";
import { jsonSize, textSize } from "./json-size.ts";
import { essenceOf } from "./media-type.ts";
import { parseQuery } from "./query.ts";
import { type FunctionRequest } from "./function-request.ts";
import { RequestError } from "./request-error.ts";

/** Whether there is anything to read, by the request's head. */
export function hasBody({ headers }: FunctionRequest): boolean {
  if (headers["transfer-encoding"] !== undefined) return true;
  const length = headers["content-length"];
  return length !== undefined && length !== "0";
}

/** Multipart bodies stay unread: they may be large, and Functions bring a parser of their own. */
export function isLeftUnread({ headers }: FunctionRequest): boolean {
  return essenceOf(headers["content-type"]).startsWith("multipart/");
}

/** Of a type that is text, JSON or a form, as it is: what a program may want parsed, or read by itself. */
export function isPlainText({ headers }: FunctionRequest): boolean {
  const essence = essenceOf(headers["content-type"]);
  const isText = /^text\/|[/+]json$|^application\/x-www-form-urlencoded$/.test(essence);
  return isText && headers["content-encoding"] === undefined;
}

/** The whole body, decompressed. Fails with a `RequestError` when it is too large, also for the memory that is left. */
export async function readBody(request: FunctionRequest, limitMb: number): Promise<Buffer> {
  checkLength(request, limitMb);
  announce(request);
  const held = heldBodyOf(request);
  const chunks: Buffer[] = [];
  for await (const chunk of limited(request, limitMb)) {
    held.add(chunk.length);
    chunks.push(chunk);
  }
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
}

/** Throws a `RequestError` when there is no memory for so much. */
export function announce(request: FunctionRequest): void {
  heldBodyOf(request).announce(Number(request.headers["content-length"] ?? 0));
}

/** The body, decompressed, as it comes in. Fails with a `RequestError` when it is too large. */
export async function* limited(request: FunctionRequest, limitMb: number): AsyncGenerator<Buffer> {
  checkLength(request, limitMb);
  const limit = limitMb * 1024 * 1024;
  let size = 0;
  for await (const chunk of await decoded(request)) {
    size += chunk.length;
    if (size > limit) throw tooLarge(limitMb);
    yield chunk;
  }
}

/** Known before a byte is read; a chunked body shows its size only on the way. */
export function checkLength(request: FunctionRequest, limitMb: number): void {
  if (isTooLong(request, limitMb)) throw tooLarge(limitMb);
}

export function isTooLong({ headers }: FunctionRequest, limitMb: number): boolean {
  return Number(headers["content-length"] ?? 0) > limitMb * 1024 * 1024;
}

/**
 * What a body means by its content type: JSON (also `+json`), text, a form, else the bytes. Nothing
 * at all when it is empty.
 */
export function parseBody(body: Buffer, request: FunctionRequest): unknown {
  if (body.length === 0) return undefined;
  const contentType = request.headers["content-type"];
  const essence = essenceOf(contentType);
  if (essence === "application/json" || essence.endsWith("+json")) return parseJson(body, request);
  if (essence === "application/x-www-form-urlencoded") return parseQuery(readText(body, request));
  return essence.startsWith("text/") ? readText(body, request) : body;
}

/** Fails with a `RequestError` when there is no memory for it. */
export function readText(body: Buffer, request: FunctionRequest): string {
  const { "content-type": contentType } = request.headers;
  return heldBodyOf(request).made(body, textSize, () => decodeText(body, contentType));
}

/** Fails with a `RequestError` when it is not JSON, or nothing that there is memory for. */
export function parseJson(body: Buffer, request: FunctionRequest): unknown {
  const { "content-type": contentType } = request.headers;
  try {
    const parse = () => JSON.parse(decodeText(body, contentType, true)) as unknown;
    return heldBodyOf(request).made(body, jsonSize, parse);
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw new RequestError(400, `the request body is not valid JSON: ${(error as Error).message}`);
  }
}

async function decoded(request: FunctionRequest): Promise<AsyncIterable<Buffer>> {
  const encoding = request.headers["content-encoding"]?.trim().toLowerCase() ?? "identity";
  // Giving up in the middle must leave the connection, for the answer.
  if (encoding === "identity")
    return request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  const zlib = await import("node:zlib");
  const decompressors = new Map<string, () => Readable & NodeJS.WritableStream>([
    ["gzip", () => zlib.createGunzip()],
    ["x-gzip", () => zlib.createGunzip()],
    ["deflate", () => zlib.createInflate()],
    ["br", () => zlib.createBrotliDecompress()],
  ]);
  const create = decompressors.get(encoding);
  if (!create) throw new RequestError(415, `unsupported content encoding ${encoding}`);
  return readable(request, create());
}

async function* readable(
  request: FunctionRequest,
  decompressor: Readable & NodeJS.WritableStream,
): AsyncGenerator<Buffer> {
  request.once("aborted", () => decompressor.destroy(new Error("aborted")));
  try {
    yield* request.pipe(decompressor) as AsyncIterable<Buffer>;
  } catch {
    throw new RequestError(400, "the request body cannot be decompressed");
  } finally {
    request.unpipe();
  }
}

function tooLarge(limitMb: number): RequestError {
  return new RequestError(
    413,
    `the request body is larger than ${limitMb} MB (FUNC_BODY_MB_LIMIT)`,
  );
}
