/** How much of the disk a data directory takes, part by part. */
import { lstatSync, readdirSync, type Stats } from "node:fs";
import path from "node:path";

/** Paths in the data directory, the most exact one first; what is in none of them is not counted. */
const parts: readonly [name: string, below: string][] = [
  ["objects", "api"],
  ["events and calls", "events"],
  ["registry", "registry"],
  ["images", "node/images"],
  ["Pods", "node/pods"],
  ["interpreters", "node"],
  ["logs", "logs"],
];
/** More files than this are not looked at. */
const maxFiles = 300_000;

export interface DiskUse {
  /** Bytes on the disk, by part, the largest first. A file with several names counts for the part that has it first. */
  parts: [name: string, bytes: number][];
  /** False where there were too many files to look at all of them. */
  isWhole: boolean;
}

export function diskUseOf(dataDir: string): DiskUse {
  const seen = new Set<string>();
  const device = lookAt(dataDir)?.dev;
  let left = maxFiles;
  const add = (dir: string): number => {
    let bytes = 0;
    for (const name of namesIn(dir)) {
      if (--left < 0) return bytes;
      const file = path.join(dir, name);
      const found = lookAt(file);
      // Of what is mounted there, and of a file's second name, nothing is counted.
      if (!found || found.dev !== device || seen.has(`${found.ino}`)) continue;
      seen.add(`${found.ino}`);
      bytes += found.blocks * 512 + (found.isDirectory() ? add(file) : 0);
    }
    return bytes;
  };
  const found = parts.map(([name, below]): [string, number] => [
    name,
    add(path.join(dataDir, below)),
  ]);
  return { parts: found.toSorted((a, b) => b[1] - a[1]), isWhole: left >= 0 };
}

/** None of a directory that is gone, or another user's. */
function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

function lookAt(file: string): Stats | undefined {
  try {
    return lstatSync(file, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
