import { type ObjectKey } from "@spry/kube";

/**
 * The memory for bodies and heads that the gateway keeps, of all requests together. An owner may take no more than is left
 * for others (dynamic thresholds, Choudhury and Hahne 1998): one alone gets half of it, two a third each, and there is always
 * some for the next.
 */
export class MemoryBudget {
  readonly #taken = new Map<ObjectKey, number>();
  #free: number;

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** False when it is too much, and nothing is taken. */
  take(owner: ObjectKey, bytes: number): boolean {
    const taken = (this.#taken.get(owner) ?? 0) + bytes;
    if (taken > this.#free - bytes) return false;
    this.#taken.set(owner, taken);
    this.#free -= bytes;
    return true;
  }

  give(owner: ObjectKey, bytes: number): void {
    this.#free += bytes;
    const taken = (this.#taken.get(owner) ?? 0) - bytes;
    if (taken > 0) this.#taken.set(owner, taken);
    else this.#taken.delete(owner);
  }
}
