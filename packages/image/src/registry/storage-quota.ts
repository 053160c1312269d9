import { RegistryFailure } from "./registry-failure.ts";

/** From this share of the quota on, cleaning is asked for. */
const pressureShare = 0.8;

/**
 * How many bytes of content there are and may be. Blobs are counted when they are stored, uploads while
 * they come in; what a file system adds to that is not.
 */
export class StorageQuota {
  readonly limit: number;
  /** In blobs. */
  stored = 0;
  /** How many blobs those are. */
  blobs = 0;
  /** In uploads that have not ended, and manifests that are being written. */
  incoming = 0;
  readonly #onPressure: () => void;

  constructor(limit: number, onPressure: () => void = () => {}) {
    this.limit = limit;
    this.#onPressure = onPressure;
  }

  /** Whether so much is stored that what nobody strictly needs should go. */
  get isUnderPressure(): boolean {
    return this.stored + this.incoming > this.limit * pressureShare;
  }

  /** Makes room for bytes of an upload or a manifest, or throws what the pushing side shows to its user. */
  reserve(bytes: number): void {
    if (this.stored + this.incoming + bytes > this.limit) {
      this.#onPressure();
      throw new RegistryFailure(
        "DENIED",
        `the registry is full: ${inWords(this.stored + this.incoming)} of ${inWords(this.limit)} are in use; ` +
          "delete Functions that are no longer needed, or give the registry a larger quota",
      );
    }
    this.incoming += bytes;
  }

  release(bytes: number): void {
    this.incoming -= bytes;
  }

  /** Sets the count by the sizes of all blobs. */
  counted(sizes: number[]): void {
    this.blobs = sizes.length;
    this.stored = sizes.reduce((sum, size) => sum + size, 0);
  }

  add(bytes: number): void {
    this.stored += bytes;
    this.blobs++;
    if (this.isUnderPressure) this.#onPressure();
  }

  remove(bytes: number): void {
    this.stored = Math.max(0, this.stored - bytes);
    this.blobs = Math.max(0, this.blobs - 1);
  }
}

function inWords(bytes: number): string {
  const gib = bytes / 1024 ** 3;
  return gib >= 1 ? `${gib.toFixed(1)} GiB` : `${(gib * 1024).toFixed(1)} MiB`;
}
