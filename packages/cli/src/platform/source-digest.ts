import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";

/** A digest (hex, 16 digits) of the TypeScript below a directory, tests left out: it names what is made of it. */
export function sourceDigest(dir: string): string {
  const hash = createHash("sha256");
  const files = globSync("**/*.{ts,json}", { cwd: dir }).filter(
    (file) => !file.endsWith(".test.ts"),
  );
  for (const file of files.sort()) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(path.join(dir, file)))
      .update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}
