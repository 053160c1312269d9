import { createHash } from "node:crypto";
import { createReadStream, mkdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { type Readable } from "node:stream";
import { algorithmOf, type Digest, digestOfHex, hexOf } from "../digest.ts";
import { type ImageIndex, type ImageManifest } from "../manifest.ts";
import { type Clock } from "../clock.ts";
import { type Logger, silentLogger } from "../log.ts";
import { markAsUsed, moveDurably, writeDurably } from "./durable-file.ts";
import { parseStored } from "./manifest-check.ts";
import { type StorageQuota } from "./storage-quota.ts";

const algorithms = ["sha256", "sha512"] as const;

/**
 * Content by digest, shared by all repositories: `<dir>/blobs/<algorithm>/<2 hex>/<hex>`. A file is verified before
 * it gets its name, and again when it is first used after a start: disks and people shorten files. A file that does
 * not match its digest is removed, so that the client that needs it sends it again.
 */
export class BlobStore {
  readonly #blobs: string;
  /** For files in the making; on the same file system, so that a rename is enough. */
  readonly scratch: string;

  readonly #quota: StorageQuota;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Sizes of files that have been read through since the start. */
  readonly #verified = new Map<Digest, number>();
  /** Those that are being read through: many who ask at once wait for one reading. */
  readonly #verifying = new Map<Digest, Promise<boolean>>();
  #counting: Map<Digest, number> | undefined;

  constructor(dir: string, quota: StorageQuota, clock: Clock, log: Logger = silentLogger) {
    this.#log = log;
    this.#quota = quota;
    this.#clock = clock;
    this.#blobs = join(dir, "blobs");
    this.scratch = join(dir, "scratch");
    for (const algorithm of algorithms)
      mkdirSync(join(this.#blobs, algorithm), { recursive: true });
    // What a crash left behind: an upload cannot continue, because its running digest is lost.
    rmSync(this.scratch, { recursive: true, force: true });
    mkdirSync(this.scratch, { recursive: true });
  }

  #fileOf(digest: Digest): string {
    const hex = hexOf(digest);
    return join(this.#blobs, algorithmOf(digest), hex.slice(0, 2), hex);
  }

  /** Size in bytes, or undefined when it does not exist. */
  sizeOf(digest: Digest): number | undefined {
    return statSync(this.#fileOf(digest), { throwIfNoEntry: false })?.size;
  }

  /** Whether the content is there and is what its digest says. Read through once, unless its size changes. */
  async holds(digest: Digest): Promise<boolean> {
    const size = this.sizeOf(digest);
    if (size === undefined) return false;
    if (this.#verified.get(digest) === size) return true;
    const running = this.#verifying.get(digest);
    if (running) return running;
    const verifying = this.#verify(digest, size).finally(() => this.#verifying.delete(digest));
    this.#verifying.set(digest, verifying);
    return verifying;
  }

  async #verify(digest: Digest, size: number): Promise<boolean> {
    const hash = createHash(algorithmOf(digest));
    for await (const chunk of this.stream(digest)) hash.update(chunk as Buffer);
    return this.#judge(digest, size, hash.digest("hex"));
  }

  #judge(digest: Digest, size: number, hex: string): boolean {
    if (hex === hexOf(digest)) {
      this.#verified.set(digest, size);
      return true;
    }
    this.#log.error({ digest, size }, "removing damaged content: it has to be pushed again");
    this.delete(digest);
    return false;
  }

  /** Counts again what is stored, while more comes in. */
  async count(): Promise<void> {
    const sizes = (this.#counting = new Map<Digest, number>());
    for await (const { digest, size } of this.list()) sizes.set(digest, size);
    this.#counting = undefined;
    this.#quota.counted([...sizes.values()]);
  }

  #added(digest: Digest, size: number): void {
    this.#verified.set(digest, size);
    this.touch(digest);
    this.#counting?.set(digest, size);
    this.#quota.add(size);
  }

  /** A stored manifest, or undefined when its content is missing. */
  readManifest(digest: Digest): ImageManifest | ImageIndex | undefined {
    const content = this.read(digest);
    return content && parseStored(content);
  }

  /** The whole of a small blob; undefined when it is missing, or does not match its digest. */
  read(digest: Digest): Buffer | undefined {
    if (this.sizeOf(digest) === undefined) return undefined;
    const content = readFileSync(this.#fileOf(digest));
    const hex = createHash(algorithmOf(digest)).update(content).digest("hex");
    return this.#judge(digest, content.length, hex) ? content : undefined;
  }

  /** Bytes `start` to `end`, both included. */
  stream(digest: Digest, range?: { start: number; end: number }): Readable {
    return createReadStream(this.#fileOf(digest), { highWaterMark: 256 * 1024, ...range });
  }

  /** Stores content whose digest has been verified. Throws `DENIED` when the quota has no room for it. */
  async write(content: Uint8Array, digest: Digest, namespace?: string): Promise<void> {
    const file = this.#fileOf(digest);
    if (this.sizeOf(digest) === content.length) return this.touch(digest);
    this.#quota.reserve(content.length, namespace);
    try {
      await writeDurably(file, content, this.scratch);
    } finally {
      this.#quota.release(content.length, namespace);
    }
    this.#added(digest, content.length);
  }

  /** Takes over a finished file of the scratch directory whose digest has been verified. */
  async adopt(file: string, digest: Digest, size: number): Promise<void> {
    const target = this.#fileOf(digest);
    // One of another size was shortened, and is replaced. Asked without stopping others: the disk may be busy with what has been sent.
    const found = await stat(target).catch(() => undefined);
    if (found?.size === size) {
      this.touch(digest);
      await rm(file, { force: true });
      return;
    }
    await moveDurably(file, target);
    this.#added(digest, size);
  }

  /** Marks as wanted just now, which garbage collection respects. */
  touch(digest: Digest): void {
    markAsUsed(this.#fileOf(digest), this.#clock);
  }

  /** When it was last written or requested, in milliseconds since the epoch; 0 when it does not exist. */
  usedAt(digest: Digest): number {
    return statSync(this.#fileOf(digest), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  }

  delete(digest: Digest): void {
    this.#counting?.delete(digest);
    this.#verified.delete(digest);
    this.#quota.remove(this.sizeOf(digest) ?? 0);
    rmSync(this.#fileOf(digest), { force: true });
  }

  /** Every blob with the time when it was last written or asked for, in milliseconds since the epoch. */
  async *list(): AsyncGenerator<{ digest: Digest; size: number; usedAt: number }> {
    for (const algorithm of algorithms) {
      const directory = join(this.#blobs, algorithm);
      for (const shard of await readdir(directory)) {
        for (const hex of await readdir(join(directory, shard))) {
          const digest = digestOfHex(hex);
          const found = await stat(join(directory, shard, hex)).catch(() => undefined);
          if (!digest || !found) continue;
          const { size, mtimeMs } = found;
          yield { digest, size, usedAt: mtimeMs };
        }
      }
    }
  }
}
