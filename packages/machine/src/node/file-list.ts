/** What an unpacked image consists of, so that files which were shortened or removed since are found before it is used. */
import { lstatSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { type PlacedFile, type PlacedFiles } from "@spry/image";

/** Entries looked at between two turns of the event loop. */
const batch = 500;

/**
 * Writes a list of the regular files below `rootDir`, each with its size, to `file`. Of what its last layer has brought, the sizes are
 * known; `before` is a directory with all that was there already.
 */
export async function writeFileList(
  rootDir: string,
  file: string,
  { placed, before }: { placed?: PlacedFiles | undefined; before?: string | undefined } = {},
): Promise<void> {
  const known = placed?.isWhole === true ? placed.files : new Map<string, PlacedFile>();
  const isAll = known.size > 0 && before !== undefined;
  const sizes = await sizesBelow(isAll ? before : rootDir, known);
  if (isAll) for (const [name, { size }] of known) sizes[name] = size;
  writeFileSync(file, JSON.stringify(sizes));
}

async function sizesBelow(
  root: string,
  known: ReadonlyMap<string, PlacedFile>,
): Promise<Record<string, number>> {
  const sizes: Record<string, number> = {};
  const folders = [""];
  let entries = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of readdirSync(path.join(root, folder), { withFileTypes: true })) {
      if (++entries % batch === 0) await turn();
      const name = `${folder}${entry.name}`;
      if (entry.isDirectory()) folders.push(`${name}/`);
      else if (entry.isFile())
        sizes[name] = known.get(name)?.size ?? lstatSync(`${root}/${name}`).size;
    }
  }
  return sizes;
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
