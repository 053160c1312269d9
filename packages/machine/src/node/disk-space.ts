import { lstat, readdir, statfs } from "node:fs/promises";
import path from "node:path";

/** Of the file system that holds a directory, in bytes. */
export interface DiskSpace {
  capacity: number;
  /** Available without privileges. */
  available: number;
}

export type MeasureDisk = (dir: string) => Promise<DiskSpace>;

export const measureDisk: MeasureDisk = async (dir) => {
  const { bsize, blocks, bavail } = await statfs(dir);
  return { capacity: blocks * bsize, available: bavail * bsize };
};

const blockBytes = 512;
/** More entries than these are not counted: a Pod with so many is large enough. */
const maxEntries = 100_000;

/** The space that a directory takes on the disk, in bytes; 0 when it does not exist. Links are not followed. */
export async function directoryBytes(dir: string): Promise<number> {
  const pending = [dir];
  let [bytes, entries] = [0, 0];
  for (let next = pending.pop(); next !== undefined; next = pending.pop())
    for (const entry of await readdir(next, { withFileTypes: true }).catch(() => [])) {
      if (++entries > maxEntries) return bytes;
      const name = path.join(next, entry.name);
      if (entry.isDirectory()) pending.push(name);
      const stats = await lstat(name).catch(() => undefined);
      bytes += (stats?.blocks ?? 0) * blockBytes;
    }
  return bytes;
}
