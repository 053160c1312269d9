import { type Clock, systemClock } from "./clock.ts";

/** A rate limit with bursts: `burst` tokens at once, then `perSecond` of them. */
export class TokenBucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #at: number;

  constructor(options: { perSecond: number; burst: number; clock?: Clock }) {
    this.#clock = options.clock ?? systemClock;
    this.#perSecond = options.perSecond;
    this.#burst = options.burst;
    this.#tokens = options.burst;
    this.#at = this.#clock.elapsed();
  }

  /** Takes a token if there is one. */
  tryTake(): boolean {
    this.#refill();
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  /** Takes a token, ahead of time if need be; returns the milliseconds to wait for it. */
  reserve(): number {
    this.#refill();
    this.#tokens--;
    return this.#tokens >= 0 ? 0 : Math.ceil((-this.#tokens / this.#perSecond) * 1000);
  }

  #refill(): void {
    const now = this.#clock.elapsed();
    // A clock that was set back gives nothing and takes nothing.
    const seconds = Math.max(0, now - this.#at) / 1000;
    this.#at = now;
    this.#tokens = Math.min(this.#burst, this.#tokens + seconds * this.#perSecond);
  }
}
