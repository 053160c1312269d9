/** What a directory's `tsconfig.json` says, with what it extends. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const maxDepth = 10;
const maxBytes = 1_000_000;

/** An option of the compiler; undefined where no file sets it, or the one that would cannot be read. */
export function compilerOption(file: string, name: string, depth = 0): unknown {
  const { compilerOptions, extends: bases } = readSettings(file) ?? {};
  const own = compilerOptions?.[name];
  if (own !== undefined || depth >= maxDepth) return own;
  // The last one counts.
  for (const base of [bases ?? []].flat().toReversed()) {
    const place = placeOf(base, file);
    const found = place === undefined ? undefined : compilerOption(place, name, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

interface Settings {
  compilerOptions?: Record<string, unknown>;
  extends?: string | string[];
}

function readSettings(file: string): Settings | undefined {
  try {
    const text = readFileSync(file, "utf8").slice(0, maxBytes);
    return JSON.parse(withoutComments(text)) as Settings;
  } catch {
    return undefined;
  }
}

/** JSON with comments and with commas before the end, as plain JSON. */
function withoutComments(text: string): string {
  const kept = (_: string, string?: string) => string ?? "";
  return text
    .replace(/^\uFEFF/, "")
    .replaceAll(/("(?:\\.|[^"\\])*")|\/\/[^\n]*|\/\*[^]*?\*\//g, kept)
    .replaceAll(/("(?:\\.|[^"\\])*")|,(?=\s*[}\]])/g, kept);
}

function placeOf(base: string, from: string): string | undefined {
  const isPath = /^\.{1,2}(?:[\\/]|$)/.test(base) || path.isAbsolute(base);
  if (isPath) {
    const place = path.resolve(path.dirname(from), base);
    return place.endsWith(".json") ? place : `${place}.json`;
  }
  for (const each of [base, `${base}.json`, `${base}/tsconfig.json`]) {
    try {
      const found = createRequire(from).resolve(each);
      if (found.endsWith(".json")) return found;
    } catch {
      // The next one.
    }
  }
  return undefined;
}
