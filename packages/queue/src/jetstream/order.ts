/** Which messages may be handed out, where those of one order follow each other: by position. */
export class Order<T> {
  /** Those of an order that have come, the first of which is handed out or waits for its next attempt. */
  readonly #lines = new Map<string, T[]>();
  #held = 0;

  /** How many wait for earlier ones. */
  get held(): number {
    return this.#held;
  }

  /** Whether it is the first one; the others are returned by `leave`. */
  enter(order: string, one: T): boolean {
    const line = this.#lines.get(order);
    if (!line) {
      this.#lines.set(order, [one]);
      return true;
    }
    line.push(one);
    this.#held++;
    return false;
  }

  /** The first one has been handled; returns the next. */
  leave(order: string): T | undefined {
    const line = this.#lines.get(order);
    if (!line) return undefined;
    line.shift();
    const [next] = line;
    if (next === undefined) this.#lines.delete(order);
    else this.#held--;
    return next;
  }

  clear(): void {
    this.#lines.clear();
    this.#held = 0;
  }
}
