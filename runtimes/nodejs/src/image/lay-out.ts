import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type RuntimeFile, startFile } from "./runtime-files.ts";

/** As an image has it: the runtime's files in `dir`, the Function's in `dir/function`. Returns the file to start. */
export function layOut(
  dir: string,
  runtime: readonly RuntimeFile[],
  functionFiles: Readonly<Record<string, string>>,
): string {
  const ofFunction = Object.entries(functionFiles).map(([name, content]) => ({
    path: `function/${name}`,
    content,
  }));
  for (const { path: name, content } of [...runtime, ...ofFunction]) {
    mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    writeFileSync(path.join(dir, name), content);
  }
  return path.join(dir, startFile);
}
