/** Tests find TypeScript by the names that Functions find it by. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { findTypeScript } from "@spry/runtime-nodejs";

/** `NODE_OPTIONS` for processes of tests, with what it has already; it names a file in the directory, which the caller removes. */
export function typeScriptHook(options = process.env["NODE_OPTIONS"]): {
  nodeOptions: string;
  directory: string;
} {
  const directory = mkdtempSync(path.join(tmpdir(), "spry-test-"));
  const file = path.join(directory, "typescript.cjs");
  writeFileSync(file, `(${findTypeScript.toString()})();\n`);
  const quoted = JSON.stringify(file);
  return { nodeOptions: [options ?? "", `--require ${quoted}`].join(" ").trim(), directory };
}
