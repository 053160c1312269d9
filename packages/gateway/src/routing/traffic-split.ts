import { type Weighted } from "./route.ts";

interface Share<T> extends Weighted<T> {
  /** How far it is behind its share. */
  credit: number;
}

/**
 * Spreads requests by weight, without chance: smooth weighted round robin, as nginx does it. Of every `sum of weights`
 * requests in a row each target gets exactly its weight, spread evenly.
 */
export class TrafficSplit<T> {
  readonly #shares: Share<T>[];
  readonly #total: number;
  readonly #first: T;

  /** At least one target. Where no weight is above 0, the first one gets everything. */
  constructor(targets: readonly [Weighted<T>, ...Weighted<T>[]]) {
    const shares = targets.filter(({ weight }) => weight > 0);
    this.#shares = shares.map((share) => ({ ...share, credit: 0 }));
    this.#total = shares.reduce((sum, { weight }) => sum + weight, 0);
    this.#first = (shares[0] ?? targets[0]).target;
  }

  next(): T {
    if (this.#shares.length <= 1) return this.#first;
    let best: Share<T> | undefined;
    for (const share of this.#shares) {
      share.credit += share.weight;
      if (!best || share.credit > best.credit) best = share;
    }
    if (!best) return this.#first;
    best.credit -= this.#total;
    return best.target;
  }
}
