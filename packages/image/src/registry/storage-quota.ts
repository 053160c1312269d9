import { NamespaceUses } from "./namespace-uses.ts";
import { RegistryFailure } from "./registry-failure.ts";

/** From this share of the quota on, cleaning is asked for. */
const pressureShare = 0.8;
/** Up to this share of the quota, requests are served in their order. */
const openShare = 0.85;
/** Of what is still free beyond it, a namespace may have so much altogether: the next one finds room to build. */
const reservedShare = 0.25;

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
  /** What of it the namespaces have. */
  readonly uses = new NamespaceUses();
  readonly #incoming = new Map<string, number>();
  readonly #onPressure: () => void;
  /** Something was refused since what is dispensable was last removed. */
  #hasRefused = false;

  constructor(limit: number, onPressure: () => void = () => {}) {
    this.limit = limit;
    this.#onPressure = onPressure;
  }

  /** Whether so much is stored that content which is not strictly needed should be removed. */
  get isUnderPressure(): boolean {
    return this.#hasRefused || this.stored + this.incoming > this.limit * pressureShare;
  }

  /** Call it when dispensable content has been removed: what was refused may find space now. */
  relieved(): void {
    this.#hasRefused = false;
  }

  #refuse(message: string): never {
    this.#hasRefused = true;
    this.#onPressure();
    throw new RegistryFailure("DENIED", message);
  }

  /**
   * Makes room for bytes of an upload or a manifest, or throws what the pushing side shows to its user. Without a
   * namespace they are the platform's, which the whole quota is open to.
   */
  reserve(bytes: number, namespace?: string): void {
    if (this.stored + this.incoming + bytes > this.limit) {
      this.#refuse(
        `the registry is full: ${inWords(this.stored + this.incoming)} of ${inWords(this.limit)} are in use; ` +
          "delete Functions that are no longer needed, or give the registry a larger quota",
      );
    }
    if (namespace !== undefined) this.#requireShare(bytes, namespace);
    this.#add(bytes, namespace);
  }

  release(bytes: number, namespace?: string): void {
    this.#add(-bytes, namespace);
  }

  #requireShare(bytes: number, namespace: string): void {
    const used = this.stored + this.incoming;
    if (used + bytes <= this.limit * openShare) return;
    const own = this.uses.of(namespace) + (this.#incoming.get(namespace) ?? 0);
    if (own + bytes <= (this.limit - used) * reservedShare) return;
    this.#refuse(
      `the registry is nearly full (${inWords(used)} of ${inWords(this.limit)}), and what is left is for namespaces ` +
        `that have less in it than ${namespace} (${inWords(own)}); ` +
        "delete Functions that are no longer needed, or give the registry a larger quota",
    );
  }

  #add(bytes: number, namespace: string | undefined): void {
    this.incoming += bytes;
    if (namespace === undefined) return;
    const own = (this.#incoming.get(namespace) ?? 0) + bytes;
    if (own === 0) this.#incoming.delete(namespace);
    else this.#incoming.set(namespace, own);
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
