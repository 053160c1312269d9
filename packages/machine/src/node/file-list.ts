/** What an unpacked image consists of, so that files which were shortened or removed since are found before it is used. */
import { createReadStream, existsSync, lstatSync, readFileSync, writeFileSync } from "node:fs";
import { open, opendir } from "node:fs/promises";
import path from "node:path";
import { createInterface } from "node:readline";
import { setImmediate as turn } from "node:timers/promises";
import { type PlacedFile, type PlacedFiles } from "@spry/image";

/** Entries looked at between two turns of the event loop. */
const batch = 500;
/** The list of an image with more files is read while others go on: a list as a whole, in JSON, or one of lines. */
const atOnce = { files: 20_000, bytes: 4 * 1024 * 1024 };

const linesOf = (list: string): string => `${list}l`;

/**
 * Writes a list of the regular files below `rootDir`, each with its size, to `list`, or next to it where there are many. Of what its last
 * layer has brought, the sizes are known; `before` is a directory with all that was there already.
 */
export async function writeFileList(
  rootDir: string,
  list: string,
  { placed, before }: { placed?: PlacedFiles | undefined; before?: string | undefined } = {},
): Promise<void> {
  const known = placed?.isWhole === true ? placed.files : new Map<string, PlacedFile>();
  const isAll = known.size > 0 && before !== undefined;
  let sizes: Record<string, number> = {};
  let [files, bytes] = [0, 0];
  let lines: Awaited<ReturnType<typeof open>> | undefined;
  const moveToLines = async () => {
    const texts = Object.entries(sizes).map((entry) => `${JSON.stringify(entry)}\n`);
    await lines?.appendFile(texts.join(""));
    sizes = {};
  };
  try {
    const add = async (name: string, size: number) => {
      sizes[name] = size;
      bytes += name.length;
      if (++files > atOnce.files || bytes > atOnce.bytes)
        lines ??= await open(linesOf(list), "w", 0o600);
      if (lines && files % batch === 0) await moveToLines();
    };
    for await (const name of filesBelow(isAll ? before : rootDir))
      await add(name, known.get(name)?.size ?? sizeOf(rootDir, name) ?? 0);
    if (isAll) for (const [name, { size }] of known) await add(name, size);
    if (lines) await moveToLines();
    else writeFileSync(list, JSON.stringify(sizes));
  } finally {
    await lines?.close();
  }
}

async function* filesBelow(root: string): AsyncGenerator<string> {
  const folders = [""];
  let entries = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const opened = await opendir(path.join(root, folder), { bufferSize: batch });
    for await (const entry of opened) {
      if (++entries % batch === 0) await turn();
      const name = `${folder}${entry.name}`;
      if (entry.isDirectory()) folders.push(`${name}/`);
      else if (entry.isFile()) yield name;
    }
  }
}

function sizeOf(rootDir: string, name: string): number | undefined {
  return lstatSync(path.join(rootDir, name), { throwIfNoEntry: false })?.size;
}

/** Whether an image has so many files that its list is looked at by `firstDamagedOfMany`. */
export function hasManyFiles(list: string): boolean {
  return !existsSync(list) && existsSync(linesOf(list));
}

/**
 * The first file of the list that is missing or has another size; undefined when all are there, and for an image of an
 * earlier version, which has no list. What has been added below `rootDir` does not matter.
 */
export function firstDamagedFile(rootDir: string, list: string): string | undefined {
  let sizes: Record<string, number>;
  try {
    sizes = JSON.parse(readFileSync(list, "utf8")) as Record<string, number>;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? undefined : path.basename(list);
  }
  return Object.entries(sizes).find(([name, size]) => sizeOf(rootDir, name) !== size)?.[0];
}

/** The same for an image with many files, in turns of the event loop. */
export async function firstDamagedOfMany(
  rootDir: string,
  list: string,
): Promise<string | undefined> {
  const lines = createInterface({ input: createReadStream(linesOf(list)) });
  let entries = 0;
  try {
    for await (const line of lines) {
      if (++entries % batch === 0) await turn();
      const [name, size] = JSON.parse(line) as [string, number];
      if (sizeOf(rootDir, name) !== size) return name;
    }
    return undefined;
  } catch {
    return path.basename(linesOf(list));
  } finally {
    lines.close();
  }
}
