import { createHash } from "node:crypto";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statfsSync,
} from "node:fs";
import path from "node:path";
import { listNames } from "../records.ts";

/** In memory: a container's root directory is some sixty small files and directories, which a disk takes its time for. */
const memory = "/dev/shm";
/** A root directory takes a quarter of it. */
const enough = { bytes: 2 * 1024 * 1024, files: 512 };

/**
 * Where the root directories of a data directory's containers are: `<dir>/<Pod's uid>/<container>/`, and nothing but
 * mount points and links in them.
 */
export class Jails {
  readonly #inMemory: string;
  readonly #onDisk: string;

  constructor(dataDir: string) {
    const real = realpathSync(dataDir);
    const hash = createHash("sha256").update(real).digest("hex").slice(0, 16);
    this.#inMemory = path.join(memory, `spry-${hash}`);
    this.#onDisk = path.join(real, "jails");
  }

  of(podUid: string, container: string): string {
    const dir = hasRoom(memory) && makeOurs(this.#inMemory) ? this.#inMemory : this.#onDisk;
    // Within the data directory, which is this user's.
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    chmodSync(dir, 0o700);
    return path.join(dir, podUid, container);
  }

  /** When nothing of the Pod runs any more. */
  remove(podUid: string): void {
    for (const dir of this.#own()) {
      rmSync(path.join(dir, podUid), { recursive: true, force: true });
      try {
        rmdirSync(dir);
      } catch {
        // There are others, or there was none.
      }
    }
  }

  /** What earlier platforms have left. */
  removeAllBut(podUids: ReadonlySet<string>): void {
    const left = new Set(this.#own().flatMap((dir) => listNames(dir)));
    for (const uid of left) if (!podUids.has(uid)) this.remove(uid);
  }

  #own(): string[] {
    return [this.#inMemory, this.#onDisk].filter(isOurs);
  }
}

/** Everybody may write there: a directory that another user has made is not taken. */
function makeOurs(dir: string): boolean {
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") return false;
  }
  return isOurs(dir);
}

function isOurs(dir: string): boolean {
  const stats = lstatSync(dir, { throwIfNoEntry: false });
  const isClosed = stats !== undefined && (stats.mode & 0o777) === 0o700;
  return isClosed && stats.isDirectory() && stats.uid === process.getuid?.();
}

function hasRoom(dir: string): boolean {
  try {
    const { bavail, bsize, ffree, files } = statfsSync(dir);
    // 0 files altogether: without a limit.
    return bavail * bsize >= enough.bytes && (files === 0 || ffree >= enough.files);
  } catch {
    return false;
  }
}
