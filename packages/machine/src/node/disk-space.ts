import { type Dirent, lstatSync } from "node:fs";
import { opendir, statfs } from "node:fs/promises";
import path from "node:path";
import { setImmediate as turn } from "node:timers/promises";

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
/** What is measured of one Pod; builds with many packages write some 200,000 files. */
export const maxEntries = 500_000;
/** Beyond it the system takes no path as a whole (PATH_MAX). */
const maxPath = 4095;
/** Entries looked at between two turns of the event loop. */
const batch = 500;

/** What a directory takes on the disk. */
export interface DirectorySize {
  bytes: number;
  /** Why there may be more than that: it has more files than are counted, or they lie deeper than a path is long. */
  uncounted?: string;
}

/** Links are not followed, and a directory that does not exist has nothing. */
export async function directorySize(dir: string): Promise<DirectorySize> {
  const pending = [dir];
  let [bytes, entries] = [0, 0];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for await (const names of batchesOf(next)) {
      entries += names.length;
      if (entries > maxEntries) return { bytes, uncounted: `more than ${maxEntries} files` };
      for (const entry of names) {
        const name = path.join(next, entry.name);
        if (Buffer.byteLength(name) > maxPath)
          return { bytes, uncounted: "files below directories that are nested too deeply" };
        if (entry.isDirectory()) pending.push(name);
        bytes += blocksOf(name) * blockBytes;
      }
      await turn();
    }
  }
  return { bytes };
}

/** The same as a number; infinite where not everything can be counted. */
export async function directoryBytes(dir: string): Promise<number> {
  const { bytes, uncounted } = await directorySize(dir);
  return uncounted === undefined ? bytes : Number.POSITIVE_INFINITY;
}

async function* batchesOf(dir: string): AsyncGenerator<Dirent[]> {
  const opened = await opendir(dir, { bufferSize: batch }).catch(() => undefined);
  if (!opened) return;
  let names: Dirent[] = [];
  try {
    for await (const entry of opened) {
      names.push(entry);
      if (names.length < batch) continue;
      yield names;
      names = [];
    }
  } catch {
    // It has been removed meanwhile.
  }
  if (names.length > 0) yield names;
}

function blocksOf(file: string): number {
  try {
    return lstatSync(file, { throwIfNoEntry: false })?.blocks ?? 0;
  } catch {
    // One of the directories above it has been replaced.
    return 0;
  }
}
