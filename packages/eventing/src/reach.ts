import { type Clock } from "@spry/kube";

const firstPauseMs = 250;
/** No longer: what waits is sent within a few seconds after a receiver is back. */
const maxPauseMs = 3_000;

/**
 * Whether a receiver can be reached, as far as one loop that sends to it knows. While it cannot, one message at a time finds out,
 * after pauses: what else waits need not fail, too, to learn the same.
 */
export class Reach {
  readonly #clock: Clock;
  #misses = 0;
  #quietUntil = 0;
  #back = Promise.withResolvers<void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isAway(): boolean {
    return this.#misses > 0;
  }

  /** Resolves when the receiver has been reached again. */
  get back(): Promise<void> {
    return this.isAway ? this.#back.promise : Promise.resolve();
  }

  /** How many messages may be sent at a time, of `max`. */
  limit(max: number): number {
    return this.isAway ? 1 : max;
  }

  /** Milliseconds to wait before the next one is sent. */
  get pauseMs(): number {
    return this.isAway ? Math.max(0, this.#quietUntil - this.#clock.elapsed()) : 0;
  }

  reached(): void {
    if (!this.isAway) return;
    this.#misses = 0;
    this.#back.resolve();
    this.#back = Promise.withResolvers();
  }

  /** A try has not reached it; returns after how many milliseconds its message should be sent again. Several at once are one. */
  missed(): number {
    if (this.pauseMs === 0) {
      const pauseMs = Math.min(firstPauseMs * 2 ** Math.min(this.#misses, 10), maxPauseMs);
      this.#misses++;
      this.#quietUntil = this.#clock.elapsed() + pauseMs;
    }
    return Math.max(1, Math.ceil(this.pauseMs));
  }
}
