import { createReadStream, type Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, isAbsolute, join, resolve, sep } from "node:path";
import { pipeline } from "node:stream/promises";
import { type FunctionResponse } from "../function-response.ts";
import { RequestError } from "../request-error.ts";

/** Of Express' options, those that Functions use; `maxAge` is in milliseconds. */
export interface SendFileOptions {
  root?: string;
  headers?: Record<string, string>;
  maxAge?: number;
  dotfiles?: "allow" | "deny" | "ignore";
  cacheControl?: boolean;
  lastModified?: boolean;
  acceptRanges?: boolean;
}

/**
 * Answers with a file: its type by its name, or with the part or the 304 that the client asks for.
 * Throws a `RequestError` of 404 when there is no such file and of 403 when it lies outside the root.
 */
export async function sendFile(
  response: FunctionResponse,
  path: string,
  options: SendFileOptions,
): Promise<void> {
  const file = fileOf(path, options);
  const found = await stat(file).catch(() => undefined);
  if (!found?.isFile()) throw new RequestError(404, "Not Found");
  response.set(options.headers ?? {});
  describeFile(response, file, found, options);
  const { req: request } = response;
  if (request.fresh) {
    for (const name of ["content-type", "content-length"]) response.removeHeader(name);
    return void response.status(304).end();
  }
  const ranges = options.acceptRanges === false ? undefined : request.range(found.size);
  if (ranges === -1) {
    response.set("content-range", `bytes */${found.size}`);
    throw new RequestError(416, "Range Not Satisfiable");
  }
  // Several parts at once are more than a client may insist on: it gets the whole.
  const isPart = Array.isArray(ranges) && ranges.type === "bytes" && ranges.length === 1;
  const { start, end } = (isPart && ranges[0]) || { start: 0, end: found.size - 1 };
  if (isPart) response.status(206).set("content-range", `bytes ${start}-${end}/${found.size}`);
  response.set("content-length", end - start + 1);
  if (request.method === "HEAD" || found.size === 0) return void response.end();
  await pipeline(createReadStream(file, { start, end }), response);
}

function fileOf(path: string, { root, dotfiles = "ignore" }: SendFileOptions): string {
  if (path.includes("\0")) throw new RequestError(400, "Bad Request");
  if (root === undefined) {
    if (!isAbsolute(path)) throw new TypeError("path must be absolute or specify root to sendFile");
    return refuseHidden(basename(path), resolve(path), dotfiles);
  }
  const base = resolve(root);
  const file = resolve(join(base, path));
  if (file !== base && !file.startsWith(base.endsWith(sep) ? base : base + sep))
    throw new RequestError(403, "Forbidden");
  return refuseHidden(file.slice(base.length), file, dotfiles);
}

function refuseHidden(
  shown: string,
  file: string,
  dotfiles: NonNullable<SendFileOptions["dotfiles"]>,
): string {
  if (dotfiles === "allow" || !shown.split(sep).some((part) => /^\.[^.]/.test(part))) return file;
  throw dotfiles === "deny"
    ? new RequestError(403, "Forbidden")
    : new RequestError(404, "Not Found");
}

function describeFile(
  response: FunctionResponse,
  file: string,
  { size, mtime }: Stats,
  { maxAge = 0, cacheControl = true, lastModified = true, acceptRanges = true }: SendFileOptions,
): void {
  const usual: [string, string, boolean][] = [
    ["accept-ranges", "bytes", acceptRanges],
    ["cache-control", `public, max-age=${Math.floor(maxAge / 1000)}`, cacheControl],
    ["last-modified", mtime.toUTCString(), lastModified],
    ["etag", `W/"${size.toString(16)}-${mtime.getTime().toString(16)}"`, true],
  ];
  for (const [name, value, isWanted] of usual)
    if (isWanted && !response.hasHeader(name)) response.set(name, value);
  if (!response.hasHeader("content-type")) response.type(basename(file));
}
