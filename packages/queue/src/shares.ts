/**
 * What owners have of something that all of them share. An owner may take no more than is left for others (dynamic
 * thresholds, Choudhury and Hahne 1998): one alone gets half of it, and there is always some for the next.
 */
export class Shares {
  readonly #max: number;
  readonly #owners = new Map<string, number>();
  #total = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** How much this owner may take at present; 0 or less: nothing. */
  room(owner: string): number {
    return Math.floor((this.#max - this.#total - (this.#owners.get(owner) ?? 0)) / 2);
  }

  /** `amount` may be negative. */
  add(owner: string, amount: number): void {
    this.#total += amount;
    const left = (this.#owners.get(owner) ?? 0) + amount;
    if (left > 0) this.#owners.set(owner, left);
    else this.#owners.delete(owner);
  }

  clear(): void {
    this.#owners.clear();
    this.#total = 0;
  }
}
