import { type Clock } from "@spry/kube";

/** Wakes at the earliest of the requested times, with a single timer. */
export class WakeTimer {
  readonly #clock: Clock;
  readonly #wake: () => void;
  #cancel: () => void = () => {};
  #at = Number.POSITIVE_INFINITY;

  constructor(clock: Clock, wake: () => void) {
    this.#clock = clock;
    this.#wake = wake;
  }

  /** An infinite time is never over. */
  wakeAfter(ms: number): void {
    const at = this.#clock.elapsed() + ms;
    if (at >= this.#at || !Number.isFinite(ms)) return;
    this.#cancel();
    this.#at = at;
    this.#cancel = this.#clock.after(ms, () => {
      this.#at = Number.POSITIVE_INFINITY;
      this.#wake();
    });
  }

  clear(): void {
    this.#cancel();
    // A later one would wait for it in vain.
    this.#at = Number.POSITIVE_INFINITY;
  }
}
