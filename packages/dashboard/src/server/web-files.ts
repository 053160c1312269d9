import { readdirSync, readFileSync } from "node:fs";
import { type IncomingMessage, type ServerResponse } from "node:http";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { RequestError } from "./http.ts";

/** The page's files by their names, compressed. `index.html` is the page, whatever the path. */
export type WebFiles = ReadonlyMap<string, WebFile>;

interface WebFile {
  type: string;
  gzip: Buffer;
}

const types: Record<string, string> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** The files that `buildWeb` has written to a folder. */
export async function readWeb(folder: string): Promise<WebFiles> {
  const files = readdirSync(folder).map((name): [string, WebFile] => [
    name.replace(/\.gz$/, ""),
    {
      type: types[path.extname(name.replace(/\.gz$/, ""))] ?? "application/octet-stream",
      gzip: readFileSync(path.join(folder, name)),
    },
  ]);
  const found = new Map(files);
  if (!found.has("index.html")) throw new Error(`${folder} has no index.html`);
  return found;
}

/** File names contain a digest of the content, so a file never changes. */
const forever = "public, max-age=31536000, immutable";

/** A file below `/assets/`, or the page for every other path: which view it shows is decided in the browser. */
export function sendWebFile(
  { method, url = "/", headers: asked }: IncomingMessage,
  response: ServerResponse,
  files: WebFiles,
  headers: Record<string, string>,
): void {
  if (method !== "GET" && method !== "HEAD")
    throw new RequestError(405, "only GET is allowed here");
  const [pathname = "/"] = url.split("?", 1);
  const [, asset] = /^\/assets\/([\w.-]+)$/.exec(pathname) ?? [];
  const name = asset ?? "index.html";
  const file = files.get(name);
  if (!file || (asset === undefined && pathname.startsWith("/assets")))
    throw new RequestError(404, "this file does not exist");
  const isCompressed = acceptsGzip(asked["accept-encoding"]);
  const body = isCompressed ? file.gzip : gunzipSync(file.gzip);
  response.writeHead(200, {
    ...headers,
    ...(asset !== undefined && asset !== "icon.svg" && { "cache-control": forever }),
    "content-type": file.type,
    vary: "accept-encoding",
    ...(isCompressed && { "content-encoding": "gzip" }),
    "content-length": body.length,
  });
  response.end(method === "HEAD" ? undefined : body);
}

/** RFC 9110, section 12.5.3; a client that says nothing, such as curl, gets what it can show. */
function acceptsGzip(header: string | string[] | undefined): boolean {
  const weights = new Map<string, number>();
  for (const each of String(header ?? "").split(",")) {
    const [coding = "", ...parameters] = each.split(";").map((part) => part.trim().toLowerCase());
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
    weights.set(coding, Number(weight));
  }
  return (weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0) > 0;
}
