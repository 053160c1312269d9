/** A process that ends may accept connections for so long after the first of them broke. */
const dyingMs = 100;

/**
 * The broken connections of one request. A Pod's process that ends closes its sockets one after the other, so a request that
 * is retried at once may meet the same end a second time: that is one break, and the next try waits until the end is over.
 */
export class Breaks {
  #count = 0;
  #last: { address: string; at: number; hasRecurred: boolean } | undefined;

  /** Notes one. Returns how many there were before, of other ends than this one, and how long a retry is to wait. */
  note(address: string, now: number): { earlier: number; pauseMs: number } {
    const last = this.#last;
    const recurs = last?.address === address && now - last.at < dyingMs && !last.hasRecurred;
    if (recurs) {
      last.hasRecurred = true;
      return { earlier: this.#count - 1, pauseMs: dyingMs };
    }
    this.#last = { address, at: now, hasRecurred: false };
    return { earlier: this.#count++, pauseMs: 0 };
  }
}
