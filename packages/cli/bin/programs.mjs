// The programs of a checkout, bundled: one JavaScript file each, made again whenever a source has
// changed. Node.js would run the TypeScript as it is, but keep its compiler in memory (25 MB a process)
// and look for 300 files at every start. Locations (`import.meta`) stay those of the sources.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "./node.mjs";

const outdir = path.join(root, "node_modules", ".cache", "spry");
const source = path.join(root, "packages", "cli", "src");
const entryPoints = {
  main: path.join(source, "main.ts"),
  gateway: path.join(source, "gateway-main.ts"),
  queue: path.join(root, "packages", "queue", "src", "sqlite", "worker.ts"),
};

const keptMs = 30 * 24 * 3600 * 1000;

/** The directory with `main.js`, `gateway.js` and `queue.js`. */
export async function ensurePrograms() {
  const dir = path.join(outdir, `programs-${newestChange()}`);
  if (existsSync(dir)) return dir;
  const partial = `${dir}.${process.pid}`;
  mkdirSync(outdir, { recursive: true });
  removeOld();
  const { build, stop } = await import("esbuild");
  try {
    await build({
      entryPoints,
      outdir: partial,
      bundle: true,
      splitting: true,
      platform: "node",
      target: "node24",
      format: "esm",
      legalComments: "none",
      logLevel: "error",
      // Found by their place in node_modules, at run time.
      external: ["esbuild", "npm", "@peculiar/x509", "re2js", "reflect-metadata"],
      banner: {
        js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
      },
      plugins: [keepLocations],
    });
  } finally {
    await stop();
  }
  try {
    renameSync(partial, dir);
  } catch (error) {
    // Another process was faster; its result is the same.
    rmSync(partial, { recursive: true, force: true });
    if (!existsSync(dir)) throw error;
  }
  return dir;
}

/** A platform that has been running since may still load parts of its bundle: only what is really old goes. */
function removeOld() {
  for (const name of readdirSync(outdir)) {
    const old = path.join(outdir, name);
    if (Date.now() - statSync(old).mtimeMs > keptMs) rmSync(old, { recursive: true, force: true });
  }
}

/** `import.meta.url` and its relatives mean the source file, not the bundle. */
const keepLocations = {
  name: "keep-locations",
  setup(build) {
    build.onLoad({ filter: /\/(packages|runtimes)\/[^/]+\/src\/.*\.ts$/ }, ({ path: file }) => {
      const text = readFileSync(file, "utf8");
      if (!text.includes("import.meta.")) return undefined;
      const contents = text
        .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(file).href))
        .replaceAll("import.meta.dirname", JSON.stringify(path.dirname(file)));
      return { contents, loader: "ts" };
    });
  },
};

/** When any source or the lock file changed last, and how many files there are: in base 36. */
function newestChange() {
  let newest = statSync(path.join(root, "package-lock.json")).mtimeMs;
  let count = 0;
  const visit = (dir) => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      const file = path.join(dir, entry.name);
      if (entry.isDirectory()) visit(file);
      else if (/\.(ts|json)$/.test(entry.name) && !entry.name.endsWith(".test.ts")) {
        newest = Math.max(newest, statSync(file).mtimeMs);
        count++;
      }
    }
  };
  for (const rooms of ["packages", "runtimes"]) {
    for (const room of readdirSync(path.join(root, rooms))) {
      const sources = path.join(root, rooms, room, "src");
      if (existsSync(sources)) visit(sources);
    }
  }
  return `${Math.floor(newest).toString(36)}-${count}`;
}
