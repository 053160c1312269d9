import { type Clock, type ObjectKey } from "@spry/kube";

/**
 * How long what served before is kept after its successor has all requests: every node, and every client that keeps
 * connections, has to notice.
 */
const settleMs = 5_000;

/**
 * Since when Functions are served the other way. Only in memory: after a restart of the controller what served before is
 * kept for a little longer.
 */
export class HandOvers {
  readonly #clock: Clock;
  readonly #since = new Map<ObjectKey, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds until what served before may go; the first call of a change begins the time. */
  remainingMs(key: ObjectKey): number {
    const now = this.#clock.elapsed();
    const since = this.#since.get(key) ?? now;
    this.#since.set(key, since);
    return Math.max(0, since + settleMs - now);
  }

  /** The change has ended, or starts again. */
  forget(key: ObjectKey): void {
    this.#since.delete(key);
  }
}
