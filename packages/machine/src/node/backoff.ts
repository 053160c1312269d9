/** Kubelet's pauses: the first failure is retried at once, the next after 10 s, 20 s, ... 300 s. */
export class Backoff {
  #pauseMs = 0;
  #lastFailure = 0;

  /** Records a failure at this time; returns when the next attempt may be made. */
  failed(at: number): number {
    // Ten minutes without a failure are forgiveness.
    if (at - this.#lastFailure > forgetMs) this.#pauseMs = 0;
    const pause = this.#pauseMs;
    this.#pauseMs = Math.min(pause === 0 ? firstMs : pause * 2, lastMs);
    this.#lastFailure = at;
    return at + pause;
  }

  /** The pause that the next failure would bring. */
  get nextPauseMs(): number {
    return this.#pauseMs;
  }

  /** A pause in words: `10s`, `2m40s`. */
  static words(ms: number): string {
    const seconds = Math.round(ms / 1000);
    if (seconds < 60) return `${seconds}s`;
    return `${Math.floor(seconds / 60)}m${seconds % 60}s`;
  }
}

const firstMs = 10_000;
const lastMs = 300_000;
const forgetMs = 2 * lastMs;
