import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import {
  chmod,
  chown,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import path from "node:path";

/** A file's content and mode, by its path within the directory. */
export type Files = ReadonlyMap<string, { content: Buffer; mode: number }>;

/** Whose the files are; without a group, this program's own. */
export interface FileOwner {
  uid?: number | undefined;
  gid?: number | undefined;
  isShared?: boolean;
}

/**
 * Writes files so that a reader sees all of the old ones or all of the new ones, in Kubernetes' way
 * (`pkg/volume/util/atomic_writer.go`): the files are in `..<stamp>/`, `..data` links there, and the
 * visible names link through `..data`. Returns whether anything changed. A group that shares the files may
 * read each, whatever its mode. Whatever a writer that was killed has left is put right.
 */
export async function writeAtomicDirectory(
  dir: string,
  files: Files,
  owner: FileOwner = {},
): Promise<boolean> {
  if (sizeOf(files) <= atOnceBytes && !existsSync(dir)) {
    writeFirst(dir, files, owner);
    return true;
  }
  await mkdir(dir, { recursive: true, mode: 0o755 });
  const data = path.join(dir, dataName);
  let current = await readlink(data).catch(() => undefined);
  const isCurrent = current !== undefined && (await isSame(path.join(dir, current), files));
  if (!isCurrent) {
    current = await writeFiles(dir, files, owner);
    const next = `${data}_tmp`;
    await rm(next, { force: true });
    await symlink(current, next);
    await rename(next, data);
  }
  const isLinked = await linkVisible(dir, files);
  for (const name of await readdir(dir)) {
    const isOurs = !name.startsWith("..") || name === dataName || name === current;
    if (!isOurs) await rm(path.join(dir, name), { recursive: true, force: true });
  }
  return !isCurrent || isLinked;
}

const dataName = "..data";
/** What is not more than this is written faster than other work would take its turn. */
const atOnceBytes = 64 * 1024;
const perFileBytes = 1024;

function sizeOf(files: Files): number {
  return [...files.values()].reduce((sum, { content }) => sum + content.length + perFileBytes, 0);
}

/** They are not read yet: complete when the last name is there, or put right later. */
function writeFirst(dir: string, files: Files, owner: FileOwner): void {
  const { uid = 0, gid, isShared = false } = owner;
  mkdirSync(dir, { recursive: true, mode: 0o755 });
  const stamp = newStamp();
  mkdirSync(path.join(dir, stamp), { mode: 0o755 });
  for (const [name, { content, mode }] of files) {
    const file = path.join(dir, stamp, name);
    if (name.includes("/")) mkdirSync(path.dirname(file), { recursive: true, mode: 0o755 });
    writeFileSync(file, content, { mode });
    if (gid === undefined) continue;
    chownSync(file, uid, gid);
    if (isShared) chmodSync(file, mode | 0o440);
  }
  symlinkSync(stamp, path.join(dir, dataName));
  for (const name of visibleNames(files))
    symlinkSync(path.join(dataName, name), path.join(dir, name));
}

/** As Kubernetes writes it: programs leave such names out when they read a volume. */
function newStamp(): string {
  const time = new Date().toISOString().slice(0, 19).replaceAll(/[-T:]/g, "_");
  return `..${time}.${randomBytes(4).toString("hex")}`;
}

const visibleNames = (files: Files): Set<string> =>
  new Set([...files.keys()].map((name) => name.split("/")[0] ?? ""));

/** Written next to the files that are being read; returns the name of their directory. */
async function writeFiles(dir: string, files: Files, owner: FileOwner): Promise<string> {
  const { uid = 0, gid, isShared = false } = owner;
  const stamp = newStamp();
  for (const [name, { content, mode }] of files) {
    const file = path.join(dir, stamp, name);
    await mkdir(path.dirname(file), { recursive: true, mode: 0o755 });
    await writeFile(file, content, { mode });
    if (gid === undefined) continue;
    await chown(file, uid, gid);
    if (isShared) await chmod(file, mode | 0o440);
  }
  if (files.size === 0) await mkdir(path.join(dir, stamp), { mode: 0o755 });
  return stamp;
}

/** Returns whether a name came or went. */
async function linkVisible(dir: string, files: Files): Promise<boolean> {
  const visible = visibleNames(files);
  const present = new Set((await readdir(dir)).filter((name) => !name.startsWith("..")));
  const missing = [...visible].filter((name) => !present.has(name));
  const former = [...present].filter((name) => !visible.has(name));
  for (const name of missing) await symlink(path.join(dataName, name), path.join(dir, name));
  for (const name of former) await rm(path.join(dir, name), { force: true });
  return missing.length + former.length > 0;
}

async function isSame(dir: string, files: Files): Promise<boolean> {
  const present = await readdir(dir, { recursive: true, withFileTypes: true }).catch(() => []);
  if (present.filter((entry) => entry.isFile()).length !== files.size) return false;
  for (const [name, { content }] of files) {
    const known = await readFile(path.join(dir, name)).catch(() => undefined);
    if (!known?.equals(content)) return false;
  }
  return true;
}
