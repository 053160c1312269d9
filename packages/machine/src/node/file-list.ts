/** What an unpacked image consists of, so that files which were shortened or removed since are found before it is used. */
import { lstatSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setImmediate as turn } from "node:timers/promises";

/** Entries looked at between two turns of the event loop. */
const batch = 500;

/** Writes a list of the regular files below `rootDir`, each with its size, to `file`. */
export async function writeFileList(rootDir: string, file: string): Promise<void> {
  const sizes: Record<string, number> = {};
  let entries = 0;
  for (const entry of readdirSync(rootDir, { recursive: true, withFileTypes: true })) {
    if (++entries % batch === 0) await turn();
    if (!entry.isFile()) continue;
    const found = path.join(entry.parentPath, entry.name);
    sizes[path.relative(rootDir, found)] = lstatSync(found).size;
  }
  writeFileSync(file, JSON.stringify(sizes));
}

/**
 * The first file of the list that is missing or has another size; undefined when all are there, and for an image of an
 * earlier version, which has no list. What has been added below `rootDir` does not matter.
 */
export function firstDamagedFile(rootDir: string, file: string): string | undefined {
  let sizes: Record<string, number>;
  try {
    sizes = JSON.parse(readFileSync(file, "utf8")) as Record<string, number>;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? undefined : path.basename(file);
  }
  const isDamaged = ([name, size]: [string, number]) =>
    lstatSync(path.join(rootDir, name), { throwIfNoEntry: false })?.size !== size;
  return Object.entries(sizes).find(isDamaged)?.[0];
}
