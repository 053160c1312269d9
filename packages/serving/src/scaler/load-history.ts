const bucketMs = 1_000;

/**
 * What a Revision had to do, second by second, for as long as its window is: requests at a time (as milliseconds that
 * requests lasted) and requests that arrived. All times are the scaler's, in milliseconds.
 */
export class LoadHistory {
  readonly #load: Float64Array;
  readonly #requests: Float64Array;
  /** The second of the newest bucket. */
  #head = -1;
  /** Since when it is known what happened. */
  #since = Number.NaN;

  constructor(windowMs: number) {
    // Both ends of a window may be within a second.
    const count = Math.ceil(windowMs / bucketMs) + 1;
    this.#load = new Float64Array(count);
    this.#requests = new Float64Array(count);
  }

  get windowMs(): number {
    return (this.#load.length - 1) * bucketMs;
  }

  /** Nothing before it is taken into account: an average of a part of the window is one of that part. */
  begin(at: number): void {
    if (Number.isNaN(this.#since)) this.#since = at;
  }

  /** What is known began no later than this. */
  knownFrom(at: number): void {
    if (at < this.#since) this.#since = at;
  }

  /** Forgets what was: the next load is compared with nothing. */
  reset(at: number): void {
    this.#load.fill(0);
    this.#requests.fill(0);
    this.#head = -1;
    this.#since = at;
  }

  /** Adds what happened between two moments, evenly. */
  add(from: number, to: number, load: number, requests: number): void {
    const start = Math.max(Math.min(from, to), to - this.windowMs);
    this.begin(from);
    const first = Math.floor(start / bucketMs);
    const last = Math.floor(to / bucketMs);
    this.#advance(last);
    const span = to - from;
    for (let second = first; second <= last; second++) {
      const begin = Math.max(start, second * bucketMs);
      const end = Math.min(to, (second + 1) * bucketMs);
      const share = span > 0 ? (end - begin) / span : 1;
      const i = second % this.#load.length;
      this.#load[i] = (this.#load[i] ?? 0) + load * share;
      this.#requests[i] = (this.#requests[i] ?? 0) + requests * share;
    }
  }

  /** What happened in the window that ends now, as far as it is known: at least a second, and how much of it is known. */
  sums(now: number, windowMs: number): { load: number; requests: number; knownMs: number } {
    if (Number.isNaN(this.#since)) return { load: 0, requests: 0, knownMs: bucketMs };
    const knownMs = Math.max(bucketMs, Math.min(windowMs, now - this.#since));
    const from = now - knownMs;
    const oldest = Math.floor(from / bucketMs);
    const newest = Math.min(this.#head, Math.floor(now / bucketMs));
    let load = 0;
    let requests = 0;
    for (
      let second = Math.max(oldest, this.#head - this.#load.length + 1);
      second <= newest;
      second++
    ) {
      const i = second % this.#load.length;
      // Of the oldest second only the part within the window counts.
      const share = second === oldest ? 1 - (from - oldest * bucketMs) / bucketMs : 1;
      load += (this.#load[i] ?? 0) * share;
      requests += (this.#requests[i] ?? 0) * share;
    }
    return { load, requests, knownMs };
  }

  #advance(second: number): void {
    if (second <= this.#head) return;
    const count = this.#load.length;
    const first = Math.max(this.#head + 1, second - count + 1);
    for (let each = first; each <= second; each++) {
      this.#load[each % count] = 0;
      this.#requests[each % count] = 0;
    }
    this.#head = second;
  }
}
