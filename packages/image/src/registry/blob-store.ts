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
import { type Digest, digestOf, isDigest } from "../digest.ts";
import { moveDurably, writeDurably } from "./durable-file.ts";

/**
 * Content by digest, shared by all repositories: `<dir>/blobs/sha256/<2 hex>/<64 hex>`. A file that
 * is there is whole and right: it was verified before it got its name.
 */
export class BlobStore {
  readonly #blobs: string;
  /** For files in the making; on the same file system, so that a rename is enough. */
  readonly scratch: string;

  constructor(dir: string) {
    this.#blobs = join(dir, "blobs", "sha256");
    this.scratch = join(dir, "scratch");
    mkdirSync(this.#blobs, { recursive: true });
    // What a crash left behind: an upload cannot go on, because its running digest is gone.
    rmSync(this.scratch, { recursive: true, force: true });
    mkdirSync(this.scratch, { recursive: true });
  }

  #fileOf(digest: Digest): string {
    const hex = digest.slice("sha256:".length);
    return join(this.#blobs, hex.slice(0, 2), hex);
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

  async write(content: Uint8Array): Promise<Digest> {
    const digest = digestOf(content);
    const file = this.#fileOf(digest);
    if (!existsSync(file)) await writeDurably(file, content, this.scratch);
    return digest;
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
    for (const shard of await readdir(this.#blobs)) {
      for (const hex of await readdir(join(this.#blobs, shard))) {
        const digest = `sha256:${hex}`;
        const { size, mtimeMs } = await stat(join(this.#blobs, shard, hex));
        if (isDigest(digest)) yield { digest, size, usedAt: mtimeMs };
      }
    }
  }
}
