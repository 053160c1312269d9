/** The file that the script `start` of package.json runs: `node dist/index.js`, `tsx src/index.ts`. */
import { statSync } from "node:fs";
import path from "node:path";
import { startCommandOf } from "@spry/runtime-nodejs";
import { readPackageJson } from "./package-json.ts";

/**
 * Relative to the directory, with the extension that it has there; a file that does not exist yet is taken for JavaScript. Undefined for a
 * script that runs none of the directory. Without a script `npm start` runs `server.js`.
 */
export function startedBy(root: string): string | undefined {
  const isFile = (name: string) =>
    statSync(path.join(root, name), { throwIfNoEntry: false })?.isFile() ?? false;
  const { scripts } = readPackageJson(root);
  const command = startCommandOf(scripts);
  const hasStart = (scripts as Record<string, unknown> | undefined)?.["start"] !== undefined;
  if (!command) return !hasStart && isFile("server.js") ? "server.js" : undefined;
  if (command.file === undefined) return undefined;
  const file = path.posix.normalize(command.file);
  if (file.startsWith("..") || file.startsWith("/")) return undefined;
  const candidates = [file, ...extensions.map((each) => `${file}.${each}`), `${file}/index.js`];
  const bare = /\.\w+$/.test(file) ? file : `${file}.js`;
  return candidates.find((name) => isFile(name)) ?? bare;
}

const extensions = ["js", "mjs", "cjs", "ts", "mts", "cts"];
