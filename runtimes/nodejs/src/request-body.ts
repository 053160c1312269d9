import { type Readable } from "node:stream";
import { charsetOf, essenceOf } from "./media-type.ts";
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

/** The whole body, decompressed. */
export async function readBody(request: FunctionRequest, limitMb: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of limited(request, limitMb)) chunks.push(chunk);
  return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
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
export function parseBody(body: Buffer, contentType: string | undefined): unknown {
  if (body.length === 0) return undefined;
  const essence = essenceOf(contentType);
  if (essence === "application/json" || essence.endsWith("+json"))
    return parseJson(body, contentType);
  if (essence === "application/x-www-form-urlencoded") return parseQuery(textOf(body, contentType));
  return essence.startsWith("text/") ? textOf(body, contentType) : body;
}

function parseJson(body: Buffer, contentType: string | undefined): unknown {
  try {
    return JSON.parse(textOf(body, contentType));
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw new RequestError(400, `the request body is not valid JSON: ${(error as Error).message}`);
  }
}

function textOf(body: Buffer, contentType: string | undefined): string {
  const charset = charsetOf(contentType);
  if (charset === "utf-8" || charset === "utf8") return body.toString("utf8");
  try {
    return new TextDecoder(charset).decode(body);
  } catch {
    throw new RequestError(415, `unsupported charset ${charset}`);
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
