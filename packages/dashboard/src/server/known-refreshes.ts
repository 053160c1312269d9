import { createHash } from "node:crypto";

const max = 10_000;

/** Hashes of the refresh tokens that the provider has given or accepted, which distinguishes their owners from strangers. */
export class KnownRefreshes {
  /** The one that was used last comes last. */
  readonly #hashes = new Set<string>();

  /** Its hash; undefined when it is not known, for example after a restart. */
  find(refresh: string): string | undefined {
    const hash = hashOf(refresh);
    return this.#hashes.has(hash) ? hash : undefined;
  }

  add(refresh: string): void {
    const hash = hashOf(refresh);
    this.#hashes.delete(hash);
    this.#hashes.add(hash);
    for (const oldest of this.#hashes) {
      if (this.#hashes.size <= max) break;
      this.#hashes.delete(oldest);
    }
  }
}

const hashOf = (refresh: string): string => createHash("sha256").update(refresh).digest("base64");
