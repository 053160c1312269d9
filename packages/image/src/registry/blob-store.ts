import {
  createReadStream,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Readable } from "node:stream";
import { algorithmOf, type Digest, digestOfHex, hexOf } from "../digest.ts";
import { moveDurably, writeDurably } from "./durable-file.ts";

const algorithms = ["sha256", "sha512"] as const;

/**
 * Content by digest, shared by all repositories: `<dir>/blobs/<algorithm>/<2 hex>/<hex>`. A file that
 * is there is whole and right: it was verified before it got its name.
 */
export class BlobStore {
  readonly #blobs: string;
  /** For files in the making; on the same file system, so that a rename is enough. */
  readonly scratch: string;

  constructor(dir: string) {
    this.#blobs = join(dir, "blobs");
    this.scratch = join(dir, "scratch");
    for (const algorithm of algorithms)
      mkdirSync(join(this.#blobs, algorithm), { recursive: true });
    // What a crash left behind: an upload cannot go on, because its running digest is gone.
    rmSync(this.scratch, { recursive: true, force: true });
    mkdirSync(this.scratch, { recursive: true });
  }

  #fileOf(digest: Digest): string {
    const hex = hexOf(digest);
    return join(this.#blobs, algorithmOf(digest), hex.slice(0, 2), hex);
  }

  /** Size in bytes, or undefined when it is not there. */
  sizeOf(digest: Digest): number | undefined {
    return statSync(this.#fileOf(digest), { throwIfNoEntry: false })?.size;
  }

  /** The whole of a small blob. */
  read(digest: Digest): Buffer {
    return readFileSync(this.#fileOf(digest));
  }

  /** Bytes `start` to `end`, both included. */
  stream(digest: Digest, range?: { start: number; end: number }): Readable {
    return createReadStream(this.#fileOf(digest), { highWaterMark: 256 * 1024, ...range });
  }

  /** Stores content whose digest has been verified. */
  async write(content: Uint8Array, digest: Digest): Promise<void> {
    const file = this.#fileOf(digest);
    if (!existsSync(file)) await writeDurably(file, content, this.scratch);
  }

  /** Takes over a finished file of the scratch directory whose digest has been verified. */
  async adopt(file: string, digest: Digest): Promise<void> {
    const target = this.#fileOf(digest);
    if (existsSync(target)) rmSync(file, { force: true });
    else await moveDurably(file, target);
  }

  /** Marks as wanted just now, which garbage collection respects. */
  touch(digest: Digest): void {
    const now = new Date();
    utimesSync(this.#fileOf(digest), now, now);
  }

  delete(digest: Digest): void {
    rmSync(this.#fileOf(digest), { force: true });
  }

  /** Every blob with the time when it was last written or asked for, in milliseconds since the epoch. */
  async *list(): AsyncGenerator<{ digest: Digest; size: number; usedAt: number }> {
    for (const algorithm of algorithms) {
      const directory = join(this.#blobs, algorithm);
      for (const shard of await readdir(directory)) {
        for (const hex of await readdir(join(directory, shard))) {
          const { size, mtimeMs } = await stat(join(directory, shard, hex));
          const digest = digestOfHex(hex);
          if (digest) yield { digest, size, usedAt: mtimeMs };
        }
      }
    }
  }
}
