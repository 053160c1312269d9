import { existsSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

/** Helm: that of the machine, else where `go build` in this directory is to put it. */
export function helm(): string {
  const onPath = (process.env["PATH"] ?? "")
    .split(path.delimiter)
    .map((dir) => path.join(dir, "helm"))
    .find(existsSync);
  const cache = process.env["XDG_CACHE_HOME"] || path.join(homedir(), ".cache");
  return onPath ?? path.join(cache, "spry", "helm", "helm");
}
