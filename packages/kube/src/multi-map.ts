/** Several values under one key, for indexes in which most keys have one value: that takes no `Set`, a quarter of a kilobyte. */
export class MultiMap<K, V extends string> {
  readonly #values = new Map<K, V | Set<V>>();

  get(key: K): V[] {
    const found = this.#values.get(key);
    if (found === undefined) return [];
    return typeof found === "string" ? [found] : [...found];
  }

  add(key: K, value: V): void {
    const found = this.#values.get(key);
    if (found === undefined) this.#values.set(key, value);
    else if (typeof found !== "string") found.add(value);
    else if (found !== value) this.#values.set(key, new Set([found, value]));
  }

  delete(key: K, value: V): void {
    const found = this.#values.get(key);
    if (typeof found === "object") {
      found.delete(value);
      if (found.size > 1) return;
      const [last] = found;
      if (last !== undefined) return void this.#values.set(key, last);
    } else if (found !== value) return;
    this.#values.delete(key);
  }

  get size(): number {
    return this.#values.size;
  }
}
