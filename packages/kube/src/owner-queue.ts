/** What waits for its turn: owners have their turns one after the other, and what each of them has waits in the order of its arrival. */
export class OwnerQueue<T> {
  /** By owner, in the order of their turns. */
  readonly #waiting = new Map<string, Set<T>>();

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  add(owner: string, item: T): void {
    const items = this.#waiting.get(owner);
    if (items) items.add(item);
    else this.#waiting.set(owner, new Set([item]));
  }

  remove(owner: string, item: T): void {
    const items = this.#waiting.get(owner);
    if (items?.delete(item) && items.size === 0) this.#waiting.delete(owner);
  }

  /** Takes what is next; the next turn is another owner's, if one waits. */
  next(): T | undefined {
    for (const [owner, items] of this.#waiting) {
      this.#waiting.delete(owner);
      for (const item of items) {
        items.delete(item);
        if (items.size > 0) this.#waiting.set(owner, items);
        return item;
      }
    }
    return undefined;
  }
}
