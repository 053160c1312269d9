import { createRequire } from "node:module";
import path from "node:path";

/** The npm that comes with the project: the same version installs a Function's dependencies everywhere. */
export function npmCli(): string {
  const manifest = createRequire(import.meta.url).resolve("npm/package.json");
  return path.join(path.dirname(manifest), "bin", "npm-cli.js");
}
