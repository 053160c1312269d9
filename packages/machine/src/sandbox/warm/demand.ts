/** So long a kind of start is expected again. */
const memoryMs = 10 * 60_000;
/** As many as were started within this time may be needed at once. */
const burstMs = 60_000;

/** How many processes of each key are to wait, by the starts of the last minutes. */
export class Demand {
  readonly #max: number;
  /** Key → when, in milliseconds; the key started last is the last. */
  readonly #starts = new Map<string, number[]>();

  /** `max`: of all keys together. */
  constructor(max: number) {
    this.#max = max;
  }

  add(key: string, now: number): void {
    const starts = [...(this.#starts.get(key) ?? []), now].slice(-this.#max);
    this.#starts.delete(key);
    this.#starts.set(key, starts);
  }

  /** The keys started last first; those of which none is to wait are not in it. One of each comes before a second of any. */
  wanted(now: number): Map<string, number> {
    for (const [key, starts] of this.#starts)
      if (now - (starts.at(-1) ?? 0) >= memoryMs) this.#starts.delete(key);
    const latest = [...this.#starts].reverse();
    const wanted = new Map<string, number>();
    let left = this.#max;
    for (let round = 1; left > 0; round++) {
      const before = left;
      for (const [key, starts] of latest) {
        const most = Math.max(1, starts.filter((at) => now - at < burstMs).length);
        if (left === 0 || round > most) continue;
        wanted.set(key, round);
        left--;
      }
      if (left === before) break;
    }
    return wanted;
  }
}
