import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmdirSync,
  rmSync,
  statfsSync,
  symlinkSync,
} from "node:fs";
import path from "node:path";
import { listNames } from "../records.ts";
import { removeTree } from "../remove-tree.ts";

/** In memory: a container's root directory is some sixty small files and directories, which a disk takes its time for. */
const memory = "/dev/shm";
/** A root directory takes a quarter of it. */
const enough = { bytes: 2 * 1024 * 1024, files: 512 };
const prefix = "spry-";
/** A link in a directory in memory, to the data directory that it is for. */
const ownerLink = ".data-dir";

/**
 * Where the root directories of a data directory's containers are: `<dir>/<Pod's uid>/<container>/`, and nothing but
 * mount points and links in them.
 */
export class Jails {
  readonly #dataDir: string;
  readonly #inMemory: string;
  readonly #onDisk: string;
  readonly #tmp: string;

  constructor(dataDir: string) {
    const real = realpathSync(dataDir);
    const hash = createHash("sha256").update(real).digest("hex").slice(0, 16);
    this.#dataDir = real;
    this.#inMemory = path.join(memory, `${prefix}${hash}`);
    this.#onDisk = path.join(real, "jails");
    this.#tmp = path.join(real, "jails-tmp");
  }

  of(podUid: string, container: string): string {
    const dir = hasRoom(memory) && this.#makeInMemory() ? this.#inMemory : this.#onDisk;
    // Within the data directory, which is this user's.
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    chmodSync(dir, 0o700);
    return path.join(dir, podUid, container);
  }

  /**
   * Where a container has its /tmp if that of its Pod cannot be mounted there: on the disk with the data directory, where it is counted.
   * `jail` is one that `of` has returned.
   */
  tmpOf(jail: string): string {
    const [container, podUid] = [path.basename(jail), path.basename(path.dirname(jail))];
    return path.join(this.writtenBy(podUid), container);
  }

  /** What a Pod's containers have written to such directories. */
  writtenBy(podUid: string): string {
    return path.join(this.#tmp, podUid);
  }

  /** When nothing of the Pod runs any more. It may be many files: not while others wait. */
  async removeWritten(podUid: string): Promise<void> {
    await removeTree(this.writtenBy(podUid));
    removeIfEmpty(this.#tmp);
  }

  /** When nothing of the Pod runs any more. */
  remove(podUid: string): void {
    for (const dir of this.#own()) {
      rmSync(path.join(dir, podUid), { recursive: true, force: true });
      removeIfEmpty(dir);
    }
  }

  #makeInMemory(): boolean {
    if (!makeOurs(this.#inMemory)) return false;
    const link = path.join(this.#inMemory, ownerLink);
    if (!lstatSync(link, { throwIfNoEntry: false })) symlinkSync(this.#dataDir, link);
    return true;
  }

  /** What earlier platforms have left. */
  async removeAllBut(podUids: ReadonlySet<string>): Promise<void> {
    const left = new Set(this.#own().flatMap((dir) => listNames(dir)));
    left.delete(ownerLink);
    for (const uid of left) if (!podUids.has(uid)) this.remove(uid);
    for (const dir of this.#own()) removeIfEmpty(dir);
    for (const uid of listNames(this.#tmp)) if (!podUids.has(uid)) await this.removeWritten(uid);
  }

  /** What platforms have left whose data directories were deleted before they could end. */
  static removeOrphans(dir = memory): void {
    for (const name of listNames(dir)) {
      const orphan = path.join(dir, name);
      if (!name.startsWith(prefix) || !isOurs(orphan)) continue;
      const owner = ownerOf(orphan);
      // Without a link, it is of an earlier version: what is in use there is not known.
      if (owner === undefined) removeIfEmpty(orphan);
      else if (!existsSync(owner)) rmSync(orphan, { recursive: true, force: true });
    }
  }

  #own(): string[] {
    return [this.#inMemory, this.#onDisk].filter(isOurs);
  }
}

function ownerOf(dir: string): string | undefined {
  try {
    return readlinkSync(path.join(dir, ownerLink));
  } catch {
    return undefined;
  }
}

/** When it holds no Pod's any more. */
function removeIfEmpty(dir: string): void {
  try {
    if (readdirSync(dir).some((name) => name !== ownerLink)) return;
    rmSync(path.join(dir, ownerLink), { force: true });
    rmdirSync(dir);
  } catch {
    // There are others by now, or there was none.
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
