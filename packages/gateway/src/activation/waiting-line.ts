import { type Backend } from "../attempt/backend.ts";
import { type ErrorResponse } from "../http/error-response.ts";

/** A request that looks for a place at a Pod. */
export interface Seeker {
  /** In milliseconds of the gateway's clock. */
  arrivedAt: number;
  /** When a Pod first failed it; 0 when none has. */
  firstFailureAt: number;
}

/** How waiting ended: a place at a Pod, an error, `moved` to another destination, or nothing more to wait for. */
export type Place = Backend | ErrorResponse | "moved" | undefined;

interface Entry {
  bytes: number;
  /** Set once the request can be sent. */
  resolve?: (place: Place) => void;
}

/**
 * Requests that wait for one destination, first come, first served; those that a Pod has failed before come first. It
 * is bounded in their number and in the memory that they take.
 */
export class WaitingLine {
  readonly #maxEntries: number;
  readonly #maxBytes: number;
  readonly #entries = new Map<Seeker, Entry>();
  /** In order; both are parts of the entries. */
  readonly #retrying = new Set<Seeker>();
  readonly #ready = new Set<Seeker>();
  #bytes = 0;

  constructor(maxEntries: number, maxBytes: number) {
    this.#maxEntries = maxEntries;
    this.#maxBytes = maxBytes;
  }

  get size(): number {
    return this.#entries.size;
  }
  get hasReady(): boolean {
    return this.#retrying.size > 0 || this.#ready.size > 0;
  }

  has(seeker: Seeker): boolean {
    return this.#entries.has(seeker);
  }

  /** The limit that is reached, or undefined. */
  enter(seeker: Seeker, bytes: number): string | undefined {
    if (this.#entries.has(seeker)) return undefined;
    if (this.#entries.size >= this.#maxEntries) return `${this.#maxEntries} requests`;
    if (this.#bytes + bytes > this.#maxBytes) return `${this.#maxBytes} bytes`;
    this.#entries.set(seeker, { bytes });
    this.#bytes += bytes;
    return undefined;
  }

  /** For a request that has entered and can be sent now. */
  wait(seeker: Seeker): Promise<Place> {
    const entry = this.#entries.get(seeker);
    if (!entry) return Promise.resolve("moved");
    return new Promise((resolve) => {
      entry.resolve = resolve;
      (seeker.firstFailureAt > 0 ? this.#retrying : this.#ready).add(seeker);
    });
  }

  /** Those that only a place is missing for, in order. */
  *ready(): Generator<Seeker> {
    yield* this.#retrying;
    yield* this.#ready;
  }

  /** Gives the place to the first one. */
  serve(backend: Backend): void {
    for (const seeker of this.ready()) return this.leave(seeker, backend);
  }

  leave(seeker: Seeker, place: Place): void {
    const entry = this.#entries.get(seeker);
    if (!entry) return;
    this.#entries.delete(seeker);
    this.#retrying.delete(seeker);
    this.#ready.delete(seeker);
    this.#bytes -= entry.bytes;
    entry.resolve?.(place);
  }

  empty(place: Place): void {
    // Those whose bodies are still on their way see it when they begin to wait.
    for (const seeker of this.#entries.keys()) this.leave(seeker, place);
  }
}
