import { createHash } from "node:crypto";
import {
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { type IncomingMessage, type ServerResponse } from "node:http";
import path from "node:path";
import { gzipSync } from "node:zlib";
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

const sources = path.resolve(import.meta.dirname, "../web");
const rooms = path.resolve(import.meta.dirname, "../../..");

/** The page's files, bundled when a source has changed since, and kept in a folder of `cache`. */
export async function buildWeb(cache: string): Promise<WebFiles> {
  const folder = path.join(cache, `web-${sourcesDigest()}`);
  try {
    return filesIn(folder);
  } catch {
    await bundleInto(folder);
    return filesIn(folder);
  }
}

/** The files that `buildWeb` has written to a folder. */
export const readWeb = async (folder: string): Promise<WebFiles> => filesIn(folder);

function filesIn(folder: string): WebFiles {
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

/** A digest of times and sizes: everything that is bundled comes from these three rooms or is in the lock file. */
function sourcesDigest(): string {
  const hash = createHash("sha256");
  const files = [
    path.join(rooms, "../package-lock.json"),
    ...globSync("{dashboard,function,kube}/src/**/*.{ts,tsx,css,json}", { cwd: rooms })
      .filter((file) => !file.endsWith(".test.ts"))
      .sort()
      .map((file) => path.join(rooms, file)),
  ];
  for (const file of files) {
    const { mtimeMs, size } = statSync(file);
    hash.update(`${file} ${mtimeMs} ${size}\n`);
  }
  return hash.digest("hex").slice(0, 16);
}

/** Bundles the page into a folder, for a package or an image. */
export async function bundleInto(folder: string): Promise<void> {
  const { build, stop } = await import("esbuild");
  const result = await build({
    entryPoints: { app: path.join(sources, "main.tsx") },
    outdir: folder,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    jsx: "automatic",
    jsxImportSource: "preact",
    minify: true,
    metafile: true,
    write: false,
    legalComments: "none",
    logLevel: "silent",
  });
  // Its process would keep running for a next build, which never comes.
  await stop();
  const partial = `${folder}.${process.pid}`;
  mkdirSync(partial, { recursive: true });
  const write = (name: string, content: string | Uint8Array) =>
    writeFileSync(path.join(partial, `${name}.gz`), gzipSync(content, { level: 9 }));
  for (const file of result.outputFiles) write(path.basename(file.path), file.contents);
  const outputs = Object.entries(result.metafile.outputs);
  const [script = "", entry] = outputs.find(([, { entryPoint }]) => entryPoint) ?? [];
  const first = [
    script,
    ...(entry?.imports ?? [])
      .filter(({ kind }) => kind === "import-statement")
      .map((each) => each.path),
  ];
  const names = first.map((file) => path.basename(file));
  write("index.html", page(names, path.basename(entry?.cssBundle ?? "")));
  write("icon.svg", readFileSync(path.join(sources, "icon.svg")));
  try {
    renameSync(partial, folder);
  } catch {
    // Another process was faster; its result is the same.
    rmSync(partial, { recursive: true, force: true });
  }
}

const page = ([script, ...chunks]: string[], style: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Spry</title>
<link rel="icon" href="/assets/icon.svg">
<link rel="stylesheet" href="/assets/${style}">
${chunks.map((chunk) => `<link rel="modulepreload" href="/assets/${chunk}">`).join("\n")}
<script type="module" src="/assets/${script}"></script>
</head>
<body><div id="app"></div><noscript>The dashboard needs JavaScript.</noscript></body>
</html>
`;

/** File names contain a digest of the content, so a file never changes. */
const forever = "public, max-age=31536000, immutable";

/** A file below `/assets/`, or the page for every other path: which view it shows is decided in the browser. */
export function sendWebFile(
  { method, url = "/" }: IncomingMessage,
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
  response.writeHead(200, {
    ...headers,
    ...(asset !== undefined && asset !== "icon.svg" && { "cache-control": forever }),
    "content-type": file.type,
    "content-encoding": "gzip",
    "content-length": file.gzip.length,
  });
  response.end(method === "HEAD" ? undefined : file.gzip);
}
