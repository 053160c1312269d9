// Where the bundled programs are: in a package as they were made with it, in a checkout made again whenever a source has changed.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { isPackage, packagedPrograms, root } from "./node.mjs";

export const helpFile = "help.txt";
const outdir = path.join(root, "node_modules", ".cache", "spry");
const keptMs = 30 * 24 * 3600 * 1000;

/** The directory with `main.js`, `gateway.js` and the text of the help. */
export async function ensurePrograms() {
  if (isPackage) return packagedPrograms;
  const dir = path.join(outdir, `programs-${newestChange()}`);
  if (existsSync(dir)) return dir;
  const partial = `${dir}.${process.pid}`;
  mkdirSync(outdir, { recursive: true });
  removeOld();
  const { bundlePrograms } = await import("./bundle-programs.mjs");
  await bundlePrograms(partial);
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

/** When any source or the lock file changed last, and how many files there are: in base 36. */
function newestChange() {
  let newest = statSync(path.join(root, "package-lock.json")).mtimeMs;
  let count = 0;
  const visit = (dir) => {
    for (const entry of readdirSync(dir, { withFileTypes: true })) {
      // path.join takes as long as looking at the file.
      const file = `${dir}/${entry.name}`;
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
  const bundler = statSync(path.join(root, "packages/cli/bin/bundle-programs.mjs")).mtimeMs;
  return `${Math.floor(Math.max(newest, bundler)).toString(36)}-${count}`;
}
