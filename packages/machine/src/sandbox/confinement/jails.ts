import { createHash } from "node:crypto";
import { lstatSync, mkdirSync, realpathSync, rmdirSync, rmSync } from "node:fs";
import path from "node:path";
import { listNames } from "../records.ts";

/** In memory: a container's root directory is some sixty small files and directories, which a disk takes its time for. */
const memory = "/dev/shm";

/**
 * Where the root directories of a data directory's containers are: `<dir>/<Pod's uid>/<container>/`, and nothing but
 * mount points and links in them.
 */
export class Jails {
  readonly #dir: string;

  constructor(dataDir: string) {
    const real = realpathSync(dataDir);
    const hash = createHash("sha256").update(real).digest("hex").slice(0, 16);
    const inMemory = path.join(memory, `spry-${hash}`);
    this.#dir = isOurs(inMemory) ? inMemory : path.join(real, "jails");
  }

  of(podUid: string, container: string): string {
    return path.join(this.#dir, podUid, container);
  }

  /** When nothing of the Pod runs any more. */
  remove(podUid: string): void {
    rmSync(path.join(this.#dir, podUid), { recursive: true, force: true });
    try {
      rmdirSync(this.#dir);
    } catch {
      // There are others, or there was none.
    }
  }

  /** What earlier platforms have left. */
  removeAllBut(podUids: ReadonlySet<string>): void {
    for (const uid of listNames(this.#dir)) if (!podUids.has(uid)) this.remove(uid);
  }
}

/** Everybody may write there: a directory that another user has made is not taken. */
function isOurs(dir: string): boolean {
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") return false;
  }
  const stats = lstatSync(dir, { throwIfNoEntry: false });
  return (
    stats?.isDirectory() === true && stats.uid === process.getuid?.() && (stats.mode & 0o077) === 0
  );
}
