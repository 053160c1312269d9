import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

/** Installs packages into a directory; says why it could not. */
export function installPackages(dir: string, packages: string[]): string | undefined {
  mkdirSync(dir, { recursive: true });
  writeFileSync(path.join(dir, "package.json"), "{}");
  const npm = path.join(
    path.dirname(createRequire(import.meta.url).resolve("npm/package.json")),
    "bin/npm-cli.js",
  );
  const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  const { status, stderr } = spawnSync(process.execPath, [npm, "install", ...flags, ...packages], {
    cwd: dir,
    encoding: "utf8",
    timeout: 180_000,
  });
  return status === 0 ? undefined : `npm install failed: ${stderr.trim().split("\n")[0]}`;
}
