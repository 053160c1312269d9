// Plain JavaScript for any Node from 20: everything else runs on the Node 24 that npm brings.
import { spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");
/** When npm last brought node_modules in line with package-lock.json. */
const installedFile = path.join(root, "node_modules", ".package-lock.json");

function isInstalled() {
  if (!existsSync(installedFile)) return false;
  return statSync(installedFile).mtimeMs >= statSync(path.join(root, "package-lock.json")).mtimeMs;
}

/** Installs what package-lock.json says, unless that has been done. Says so, for it takes seconds. */
export function ensureInstalled() {
  if (isInstalled()) return;
  console.error("Installing what Spry needs (npm ci, once) ...");
  const npm = process.platform === "win32" ? "npm.cmd" : "npm";
  const result = spawnSync(npm, ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", process.stderr, process.stderr],
    shell: process.platform === "win32",
  });
  if (result.error || result.status !== 0) {
    const why = result.error
      ? `npm could not be started: ${result.error.message}`
      : "npm ci failed";
    console.error(
      `${why}. Check that npm is installed and its registry can be reached, then try again.`,
    );
    process.exit(1);
  }
}

/** The Node 24 binary: from its npm package, or the running one where no package exists. */
export function node24() {
  const require = createRequire(path.join(root, "package.json"));
  const os = process.platform === "win32" ? "win" : process.platform;
  try {
    const manifest = require.resolve(`node-${os}-${process.arch}/package.json`);
    return path.join(
      path.dirname(manifest),
      "bin",
      process.platform === "win32" ? "node.exe" : "node",
    );
  } catch {
    if (Number(process.versions.node.split(".")[0]) >= 24) return process.execPath;
    console.error(
      `Spry needs Node.js 24 and npm carries none for ${process.platform}-${process.arch}. ` +
        "Install Node.js 24 from nodejs.org and try again.",
    );
    process.exit(1);
  }
}

/**
 * Environment of our own processes: compiled code is cached, and nothing slows their start. npm hands its settings on to
 * what it runs; how this checkout is installed (.npmrc) must not count for the Functions that it builds.
 */
export function environment() {
  const env = { ...process.env };
  env.NODE_COMPILE_CACHE ??= path.join(root, "node_modules", ".cache", "node");
  delete env.NODE_OPTIONS;
  delete env.npm_config_ignore_scripts;
  delete env.npm_config_omit_lockfile_registry_resolved;
  return env;
}
