import { createHash } from "node:crypto";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";

/** A digest (hex, 16 digits) of the sources below a directory, tests left out: it names what is made of them. */
export function sourceDigest(dir: string, pattern = "**/*.{ts,json}"): string {
  const hash = createHash("sha256");
  const files = globSync(pattern, { cwd: dir }).filter(
    (file) => !file.endsWith(".test.ts") && !file.includes("testing/"),
  );
  for (const file of files.sort()) {
    hash
      .update(`${file}\0`)
      .update(readFileSync(path.join(dir, file)))
      .update("\0");
  }
  return hash.digest("hex").slice(0, 16);
}
