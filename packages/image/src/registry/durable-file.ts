import { randomUUID } from "node:crypto";
import { utimesSync } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Clock } from "../clock.ts";

/**
 * Writes a file so that a crash leaves the old content or the new, never a part: a temporary file
 * in `scratch` (same file system), forced to disk, then renamed over the target.
 */
export async function writeDurably(
  file: string,
  content: string | Uint8Array,
  scratch: string,
): Promise<void> {
  const temporary = join(scratch, randomUUID());
  try {
    await using handle = await open(temporary, "wx", 0o644);
    await handle.writeFile(content);
    await handle.datasync();
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await moveDurably(temporary, file);
}

/** Moves a file that is already on disk into place, and forces the new name to disk too. */
export async function moveDurably(from: string, to: string): Promise<void> {
  const directory = dirname(to);
  try {
    await rename(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    await mkdir(directory, { recursive: true });
    await rename(from, to);
  }
  await syncDirectory(directory);
}

/** Sets when a file was last used, which is what its modification time stands for here. */
export function markAsUsed(file: string, clock: Clock): void {
  const seconds = clock.now() / 1000;
  try {
    utimesSync(file, seconds, seconds);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/** Forces the names in a directory to disk; a directory that does not exist has none. */
export async function syncDirectory(directory: string): Promise<void> {
  // Windows cannot open directories; there the rename itself is journalled.
  if (process.platform === "win32") return;
  try {
    await using handle = await open(directory, "r");
    await handle.sync();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
