import { createHash } from "node:crypto";
import {
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { readWeb, type WebFiles } from "./web-files.ts";

// Functions, not constants: a program in an image has no sources, and leaves this file out.
const sources = () => path.resolve(import.meta.dirname, "../web");
const rooms = () => path.resolve(import.meta.dirname, "../../..");

/** The page's files, bundled when a source has changed since, and kept in a folder of `cache`. */
export async function buildWeb(cache: string): Promise<WebFiles> {
  const folder = path.join(cache, `web-${sourcesDigest()}`);
  try {
    return await readWeb(folder);
  } catch {
    await bundleInto(folder);
    return readWeb(folder);
  }
}

/** A digest of times and sizes: everything that is bundled comes from these three rooms or is in the lock file. */
function sourcesDigest(): string {
  const hash = createHash("sha256");
  const files = [
    path.join(rooms(), "../package-lock.json"),
    ...globSync("{dashboard,function,kube}/src/**/*.{ts,tsx,css,json}", { cwd: rooms() })
      .filter((file) => !file.endsWith(".test.ts"))
      .sort()
      .map((file) => path.join(rooms(), file)),
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
    entryPoints: { app: path.join(sources(), "main.tsx") },
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
  // What is loaded later is an entry point, too.
  const [script = "", entry] =
    outputs.find(([, { entryPoint }]) => entryPoint?.endsWith("/main.tsx")) ?? [];
  const first = [
    script,
    ...(entry?.imports ?? [])
      .filter(({ kind }) => kind === "import-statement")
      .map((each) => each.path),
  ];
  const names = first.map((file) => path.basename(file));
  write("index.html", page(names, path.basename(entry?.cssBundle ?? "")));
  write("icon.svg", readFileSync(path.join(sources(), "icon.svg")));
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
<body><div id="app"><div class="not-begun"><p>The dashboard is being loaded. If this stays, a part of it has not
arrived: <a href="">load it again</a>.</p></div></div><noscript>The dashboard needs JavaScript.</noscript></body>
</html>
`;
