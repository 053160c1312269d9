/** Node.js of other majors than this program's: npm packages have the official binaries. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import path from "node:path";

/**
 * Exact versions: the same checkout gives the same images. They come as npm packages, which hold nothing
 * but the official binary.
 */
const nodeVersions: Readonly<Record<string, string>> = {
  "20": "20.20.2",
  "22": "22.23.3",
  "26": "26.9.0",
};

/** Why a Node.js image of this major cannot be made; undefined when it can. */
export function whyNoNode(major: string): string | undefined {
  if (isOwn(major) || nodeVersions[major]) return undefined;
  return `no version of Node.js ${major} is pinned in tools/images/node-binary.ts`;
}

const isOwn = (major: string): boolean => process.versions.node.startsWith(`${major}.`);

/** The file of its program; what is not there yet is installed into the user's cache. */
export function nodeBinary(major: string): string {
  if (isOwn(major)) return process.execPath;
  const version = nodeVersions[major];
  const name = `node-linux-${process.arch}`;
  const cache = process.env["XDG_CACHE_HOME"] || path.join(homedir(), ".cache");
  const dir = path.join(cache, "spry", "interpreters", `${name}-${version}`);
  const binary = path.join(dir, "node_modules", name, "bin", "node");
  if (!existsSync(binary)) install(`${name}@${version}`, dir);
  return binary;
}

/** Others may be about to do the same: who is first is right. */
function install(name: string, dir: string): void {
  const partial = `${dir}.partial-${process.pid}`;
  const flags = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const args = [npmCli(), "install", ...flags, "--prefix", partial, name];
  mkdirSync(partial, { recursive: true });
  try {
    execFileSync(process.execPath, args, { cwd: partial, stdio: ["ignore", 2, 2] });
    if (!existsSync(dir)) renameSync(partial, dir);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

export function npmCli(): string {
  const manifest = createRequire(import.meta.url).resolve("npm/package.json");
  return path.join(path.dirname(manifest), "bin", "npm-cli.js");
}
