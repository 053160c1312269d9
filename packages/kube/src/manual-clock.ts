import { type Clock } from "./clock.ts";

/** A clock for tests: time passes only by `advance`. */
export class ManualClock implements Clock {
  /** What `set` has made of it, in comparison with the time that has passed. */
  #offset = 0;
  #now: number;
  readonly #timers = new Set<{ at: number; callback: () => void }>();

  constructor(start: Date | number = Date.UTC(2026, 0, 1)) {
    this.#now = Number(start);
  }

  /** In whole milliseconds, as a machine's clock has them. */
  now(): number {
    return Math.floor(this.#now + this.#offset);
  }

  elapsed(): number {
    return this.#now;
  }

  /** Sets the clock, forward or back, without any time passing. */
  set(byMs: number): void {
    this.#offset += byMs;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that have not fired. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Milliseconds until each of them fires: what real work, a process say, sets when it ends can be waited for. */
  get due(): number[] {
    return [...this.#timers].map(({ at }) => at - this.#now);
  }

  /**
   * Lets `ms` pass: timers fire in their order, and between any two of them promises get their turn,
   * so that a timer set by a woken task still fires within the same span.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    for (;;) {
      const next = [...this.#timers].sort((a, b) => a.at - b.at)[0];
      if (!next || next.at > end) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
      await settle();
    }
    this.#now = end;
  }
}

/** A turn of the event loop: everything that only waited for promises has run. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
