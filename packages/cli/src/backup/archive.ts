/**
 * A backup: a tar archive of files and, last of all, the list of their digests. An archive without the list
 * was cut short; a file that does not match it was damaged.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { packTar, type TarSource, unpackTar } from "modern-tar/fs";
import { UserError } from "../user-error.ts";

const listName = "spry-backup.json";
const formatVersion = 1;
const maxListSize = 256 * 1024 * 1024;
const maxDepth = 16;

interface FileList {
  formatVersion: number;
  /** RFC 3339. */
  createdAt: string;
  /** Of the Spry that made it. */
  version: string;
  /** Path in the archive → SHA-256, hexadecimal. */
  files: Record<string, string>;
}

/** Writes all files below `dir`. Nothing may change there meanwhile. */
export async function writeArchive(dir: string, output: Writable, version: string): Promise<void> {
  const files: Record<string, string> = {};
  for await (const name of filesBelow(dir)) files[name] = await digestOf(path.join(dir, name));
  const list: FileList = { formatVersion, createdAt: new Date().toISOString(), version, files };
  const sources: TarSource[] = Object.keys(files).map((target) => ({
    type: "file",
    source: path.join(dir, target),
    target,
    mode: 0o600,
  }));
  sources.push({ type: "content", content: JSON.stringify(list), target: listName, mode: 0o600 });
  await pipeline(packTar(sources), output);
}

/** Unpacks into the empty directory `dir` and checks every file. Throws a `UserError` if one is not as it was. */
export async function readArchive(input: Readable, dir: string): Promise<FileList> {
  try {
    const onlyFiles = ({ type }: { type?: string }) => type === "file" || type === "directory";
    await pipeline(
      input,
      unpackTar(dir, { strict: true, maxDepth, dmode: 0o700, fmode: 0o600, filter: onlyFiles }),
    );
  } catch (error) {
    throw notABackup(`cannot be read as an archive: ${(error as Error).message}`);
  }
  const list = await readList(path.join(dir, listName));
  for await (const name of filesBelow(dir)) {
    if (!Object.hasOwn(list.files, name)) throw notABackup(`${name} is not listed in it`);
  }
  for (const [name, digest] of Object.entries(list.files)) {
    const file = path.join(dir, name);
    const isThere = (await lstat(file).catch(() => undefined))?.isFile();
    if (!isThere) throw notABackup(`${name} is missing`);
    if ((await digestOf(file)) !== digest)
      throw notABackup(`${name} has changed since it was saved`);
  }
  return list;
}

async function readList(file: string): Promise<FileList> {
  const size = (await lstat(file).catch(() => undefined))?.size;
  if (size === undefined) throw notABackup("its end is missing");
  if (size > maxListSize) throw notABackup("its list of files is too long");
  const list = JSON.parse(await readFile(file, "utf8")) as FileList;
  await rm(file);
  if (list.formatVersion !== formatVersion) {
    throw new UserError(
      `the backup has the format ${list.formatVersion}, made by Spry ${list.version}`,
      `restore it with that version: this one reads format ${formatVersion}`,
    );
  }
  return list;
}

function notABackup(why: string): UserError {
  return new UserError(
    `the backup is damaged or incomplete: ${why}`,
    "use another one: nothing has been changed",
  );
}

/** Paths relative to `dir`, with `/`, in order. */
async function* filesBelow(dir: string, below = ""): AsyncGenerator<string> {
  const entries = await readdir(path.join(dir, below), { withFileTypes: true });
  entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const name = below ? `${below}/${entry.name}` : entry.name;
    if (entry.isDirectory()) yield* filesBelow(dir, name);
    else if (entry.isFile()) yield name;
  }
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(file), hash);
  return hash.digest("hex");
}
