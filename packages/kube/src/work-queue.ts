import { type Clock, systemClock } from "./clock.ts";
import { type QueueMetrics } from "./metrics/controller-metrics.ts";
import { type TokenBucket } from "./token-bucket.ts";

export interface WorkQueueOptions {
  clock?: Clock;
  /** First pause after a failure; doubled with each further one. */
  baseDelayMs?: number;
  maxDelayMs?: number;
  /** Bounds the retries of all keys together; client-go has 10 a second, 100 at once. */
  rateLimit?: TokenBucket;
  metrics?: QueueMetrics;
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
  readonly #rateLimit: TokenBucket | undefined;
  readonly #metrics: QueueMetrics | undefined;
  /** With the moment they were added or taken. */
  readonly #waiting = new Map<K, number>();
  readonly #processing = new Map<K, number>();
  readonly #again = new Set<K>();
  readonly #failures = new Map<K, number>();
  readonly #delayed = new Map<K, { at: number; cancel: () => void }>();
  readonly #takers: ((key: K | undefined) => void)[] = [];
  #closed = false;

  constructor(options: WorkQueueOptions = {}) {
    this.#clock = options.clock ?? systemClock;
    this.#baseDelayMs = options.baseDelayMs ?? 5;
    this.#maxDelayMs = options.maxDelayMs ?? 300_000;
    this.#rateLimit = options.rateLimit;
    this.#metrics = options.metrics;
  }

  /** Keys ready to be taken. */
  get length(): number {
    return this.#waiting.size;
  }

  add(key: K): void {
    if (this.#closed) return;
    if (this.#waiting.has(key) || this.#again.has(key)) return;
    this.#metrics?.added();
    if (this.#processing.has(key)) this.#again.add(key);
    else this.#offer(key);
  }

  /** Adds after a pause. Of several pauses for one key the soonest counts. */
  addAfter(key: K, ms: number): void {
    if (this.#closed) return;
    if (ms <= 0) return this.add(key);
    const at = this.#clock.elapsed() + ms;
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
    const backoff = Math.min(this.#baseDelayMs * 2 ** Math.min(failures, 40), this.#maxDelayMs);
    const ms = Math.max(backoff, this.#rateLimit?.reserve() ?? 0);
    this.#metrics?.retried();
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
    for (const [key, addedAt] of this.#waiting) {
      this.#waiting.delete(key);
      this.#hand(key, addedAt);
      return Promise.resolve(key);
    }
    if (this.#closed) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  done(key: K): void {
    const takenAt = this.#processing.get(key);
    if (takenAt === undefined) return;
    this.#processing.delete(key);
    this.#metrics?.done((this.#clock.elapsed() - takenAt) / 1000);
    if (this.#again.delete(key) && !this.#closed) this.#offer(key);
  }

  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    this.#waiting.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }
  /** To a waiting taker, else to the end of the line. */
  #offer(key: K): void {
    const now = this.#clock.elapsed();
    const taker = this.#takers.shift();
    if (taker) {
      this.#hand(key, now);
      taker(key);
    } else {
      this.#waiting.set(key, now);
      this.#metrics?.depth(this.#waiting.size);
    }
  }

  #hand(key: K, addedAt: number): void {
    const now = this.#clock.elapsed();
    this.#processing.set(key, now);
    this.#metrics?.taken((now - addedAt) / 1000);
    this.#metrics?.depth(this.#waiting.size);
  }
}
