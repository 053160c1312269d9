/** Numbers that a seed settles (mulberry32), and what is drawn with them. */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to, not including, `below`. */
  below(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  }

  one<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  bytes(length: number): Buffer {
    return Buffer.from(Array.from({ length }, () => this.below(256)));
  }

  /** The bytes with a few of them replaced, inserted, removed or repeated. */
  damaged(bytes: Buffer): Buffer {
    let result = bytes;
    for (let times = 1 + this.below(4); times > 0; times--) {
      const at = this.below(result.length + 1);
      const end = Math.min(result.length, at + this.below(12));
      const between = this.one([this.bytes(this.below(8)), result.subarray(at, end), Buffer.of()]);
      const rest = result.subarray(this.one([at, end]));
      result = Buffer.concat([result.subarray(0, at), between, rest]);
    }
    return result;
  }
}
