import { readdirSync, readFileSync, statSync } from "node:fs";
import path from "node:path";

/** All files of a directory, at any depth. What goes meanwhile, as Pods that have ended do, is none of them. */
export function filesBelow(directory: string): string[] {
  const entries = unlessGone(() => readdirSync(directory, { withFileTypes: true })) ?? [];
  return entries.flatMap((entry) => {
    const file = path.join(directory, entry.name);
    if (entry.isDirectory()) return filesBelow(file);
    return entry.isFile() ? [file] : [];
  });
}

/** Those of the files that have changed since `time`, in milliseconds: no other can hold what has been made up since. */
export function changedSince(time: number, files: readonly string[]): string[] {
  // Clocks of file systems are a few milliseconds behind.
  return files.filter((file) => (unlessGone(() => statSync(file))?.ctimeMs ?? 0) > time - 1000);
}

/** Nothing of a file that has gone since it was found. */
export function contentOf(file: string): Buffer {
  return unlessGone(() => readFileSync(file)) ?? Buffer.alloc(0);
}

function unlessGone<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
