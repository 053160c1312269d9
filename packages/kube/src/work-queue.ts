import { type Clock, systemClock } from "./clock.ts";

export interface WorkQueueOptions {
  clock?: Clock;
  /** First pause after a failure; doubled with each further one. */
  baseDelayMs?: number;
  maxDelayMs?: number;
}

/**
 * A queue of keys with the guarantees of client-go's workqueue: a key waits at most once, is never
 * handed to two workers at a time, and one that is added while being worked on is handed out again
 * afterwards. `retry` adds with exponential backoff per key until `forget`.
 */
export class WorkQueue<K extends string = string> {
  readonly #clock: Clock;
  readonly #baseDelayMs: number;
  readonly #maxDelayMs: number;
  readonly #waiting = new Set<K>();
  readonly #processing = new Set<K>();
  readonly #again = new Set<K>();
  readonly #failures = new Map<K, number>();
  readonly #delayed = new Map<K, { at: number; cancel: () => void }>();
  readonly #takers: ((key: K | undefined) => void)[] = [];
  #closed = false;

  constructor(options: WorkQueueOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#baseDelayMs = options.baseDelayMs ?? 5;
    this.#maxDelayMs = options.maxDelayMs ?? 300_000;
  }

  /** Keys ready to be taken. */
  get length(): number {
    return this.#waiting.size;
  }

  add(key: K): void {
    if (this.#closed) return;
    if (this.#processing.has(key)) {
      this.#again.add(key);
      return;
    }
    const taker = this.#takers.shift();
    if (taker) {
      this.#processing.add(key);
      taker(key);
    } else {
      this.#waiting.add(key);
    }
  }

  /** Adds after a pause. Of several pauses for one key the soonest counts. */
  addAfter(key: K, ms: number): void {
    if (this.#closed) return;
    if (ms <= 0) return this.add(key);
    const at = this.#clock.now() + ms;
    const earlier = this.#delayed.get(key);
    if (earlier && earlier.at <= at) return;
    earlier?.cancel();
    const cancel = this.#clock.after(ms, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { at, cancel });
  }

  /** Adds after the key's own backoff; returns the pause in milliseconds. */
  retry(key: K): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    const ms = Math.min(this.#baseDelayMs * 2 ** Math.min(failures, 40), this.#maxDelayMs);
    this.addAfter(key, ms);
    return ms;
  }

  /** Ends the key's backoff: its next failure starts from the first pause again. */
  forget(key: K): void {
    this.#failures.delete(key);
  }

  failuresOf(key: K): number {
    return this.#failures.get(key) ?? 0;
  }

  /** The next key; undefined once the queue is closed. The taker must call `done`. */
  take(): Promise<K | undefined> {
    for (const key of this.#waiting) {
      this.#waiting.delete(key);
      this.#processing.add(key);
      return Promise.resolve(key);
    }
    if (this.#closed) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  done(key: K): void {
    this.#processing.delete(key);
    if (this.#again.delete(key)) this.add(key);
  }

  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    this.#waiting.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }
}
