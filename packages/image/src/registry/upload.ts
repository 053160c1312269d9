import { createHash, type Hash, randomUUID } from "node:crypto";
import { createReadStream, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { type Clock } from "../clock.ts";
import { algorithmOf, type Digest, digestFrom } from "../digest.ts";
import { type BlobStore } from "./blob-store.ts";
import { FairShares } from "./fair-shares.ts";
import { RegistryFailure } from "./registry-failure.ts";
import { type StorageQuota } from "./storage-quota.ts";

interface Upload {
  readonly repository: string;
  /** Whose it is; undefined for the platform's own. */
  readonly tenant: string | undefined;
  readonly file: string;
  readonly handle: FileHandle;
  /** Of what has been written: digests are known when the last byte is. */
  readonly hash: Hash;
  size: number;
  /** Bytes of the quota that it holds. */
  reserved: number;
  busy: boolean;
  touchedAt: number;
}

/** More open uploads than any real push needs; the bound keeps descriptors for the rest. */
const uploadLimit = 256;
/** Of those, what one namespace may take at most; the more of them take many, the less each gets. */
const namespaceLimit = 64;

/** Blobs on their way in, by upload id. */
export class Uploads {
  readonly #open = new Map<string, Upload>();
  readonly #shares = new FairShares({ total: uploadLimit, each: namespaceLimit });
  readonly #blobs: BlobStore;
  readonly #quota: StorageQuota;
  readonly #clock: Clock;
  readonly #sizeLimit: number;
  readonly #expiryMs: number;

  constructor(
    blobs: BlobStore,
    quota: StorageQuota,
    options: { clock: Clock; sizeLimit: number; expiryMs: number },
  ) {
    this.#blobs = blobs;
    this.#quota = quota;
    this.#clock = options.clock;
    this.#sizeLimit = options.sizeLimit;
    this.#expiryMs = options.expiryMs;
  }

  async create(repository: string, tenant?: string): Promise<string> {
    await this.removeExpired();
    this.#shares.take(tenant, 1, "too many uploads are open");
    const id = randomUUID();
    const file = join(this.#blobs.scratch, id);
    const handle = await open(file, "wx", 0o644).catch((error: unknown) => {
      this.#shares.giveBack(tenant, 1);
      throw error;
    });
    const touchedAt = this.#clock.elapsed();
    const hash = createHash("sha256");
    this.#open.set(id, {
      repository,
      tenant,
      file,
      handle,
      hash,
      size: 0,
      reserved: 0,
      busy: false,
      touchedAt,
    });
    return id;
  }

  /** How many are open. */
  get count(): number {
    return this.#open.size;
  }

  /** Bytes received so far. */
  sizeOf(repository: string, id: string): number {
    return this.#get(repository, id).size;
  }

  /** Appends; what came before a broken connection counts, so that the client can continue from there. */
  async append(
    repository: string,
    id: string,
    source: AsyncIterable<Uint8Array>,
    start?: number,
  ): Promise<number> {
    const upload = this.#get(repository, id);
    if (upload.busy)
      throw new RegistryFailure(
        "BLOB_UPLOAD_INVALID",
        "another request is writing to this upload",
        {
          status: 409,
        },
      );
    if (start !== undefined && start !== upload.size)
      throw new RegistryFailure(
        "BLOB_UPLOAD_INVALID",
        `the content must continue at byte ${upload.size}, not at ${start}`,
        {
          status: 416,
          headers: { range: rangeOf(upload.size) },
        },
      );
    upload.busy = true;
    try {
      for await (const chunk of source) {
        // It may have been cancelled meanwhile, and then gives back what it holds only once.
        this.#get(repository, id);
        if (upload.size + chunk.length > this.#sizeLimit)
          throw new RegistryFailure(
            "SIZE_INVALID",
            `a blob may have at most ${this.#sizeLimit} bytes`,
            {
              status: 413,
            },
          );
        this.#quota.reserve(chunk.length, upload.tenant);
        upload.reserved += chunk.length;
        await upload.handle.writeFile(chunk);
        upload.hash.update(chunk);
        upload.size += chunk.length;
        upload.touchedAt = this.#clock.elapsed();
      }
    } finally {
      upload.busy = false;
    }
    return upload.size;
  }

  /** Verifies, stores, and ends the upload. A wrong digest ends it too. */
  async finish(repository: string, id: string, digest: Digest): Promise<void> {
    const upload = this.#get(repository, id);
    this.#forget(id, upload);
    try {
      const actual = await contentDigest(upload, digest);
      if (actual !== digest)
        throw new RegistryFailure(
          "DIGEST_INVALID",
          `the content has digest ${actual}, not ${digest}`,
        );
      await upload.handle.datasync();
      await upload.handle.close();
      this.#release(upload);
      await this.#blobs.adopt(upload.file, digest, upload.size);
    } catch (error) {
      await this.#discard(upload);
      throw error;
    }
  }

  /** Forgets an upload; one that has ended already is fine. */
  async cancel(repository: string, id: string): Promise<void> {
    const upload = this.#open.get(id);
    if (upload?.repository !== repository) return;
    this.#forget(id, upload);
    await this.#discard(upload);
  }

  async removeExpired(): Promise<void> {
    const oldest = this.#clock.elapsed() - this.#expiryMs;
    for (const [id, upload] of this.#open) {
      if (upload.busy || upload.touchedAt > oldest) continue;
      this.#forget(id, upload);
      await this.#discard(upload);
    }
  }

  async close(): Promise<void> {
    const open = [...this.#open.values()];
    this.#open.clear();
    await Promise.all(open.map((upload) => this.#discard(upload)));
  }

  #forget(id: string, { tenant }: Upload): void {
    if (this.#open.delete(id)) this.#shares.giveBack(tenant, 1);
  }

  #release(upload: Upload): void {
    this.#quota.release(upload.reserved, upload.tenant);
    upload.reserved = 0;
  }

  async #discard(upload: Upload): Promise<void> {
    this.#release(upload);
    await upload.handle.close().catch(() => undefined);
    rmSync(upload.file, { force: true });
  }

  #get(repository: string, id: string): Upload {
    const upload = this.#open.get(id);
    if (upload?.repository === repository) return upload;
    throw new RegistryFailure(
      "BLOB_UPLOAD_UNKNOWN",
      "the upload does not exist or has expired: start a new one",
    );
  }
}

/** The `Range` header of an upload: `0-<last byte>`, by the specification also for an empty one. */
export function rangeOf(size: number): string {
  return `0-${Math.max(0, size - 1)}`;
}

/** The algorithm is not known before the last request: for a rare one, what has come is read again. */
async function contentDigest(upload: Upload, expected: Digest): Promise<Digest> {
  const algorithm = algorithmOf(expected);
  if (algorithm === "sha256") return digestFrom(upload.hash);
  const hash = createHash(algorithm);
  for await (const chunk of createReadStream(upload.file)) hash.update(chunk as Buffer);
  return digestFrom(hash, algorithm);
}
