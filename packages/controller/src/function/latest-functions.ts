import { type Function } from "@spry/function";
import { type Informer, keyOf, type ObjectKey } from "@spry/kube";

/**
 * Functions as the cache shows them, or as this process wrote them if the cache is still behind
 * that. Otherwise a pass soon after another would judge from an old status, and its write be
 * refused.
 */
export class LatestFunctions {
  readonly #cache: Informer<Function>;
  readonly #written = new Map<ObjectKey, Function>();

  constructor(cache: Informer<Function>) {
    this.#cache = cache;
    // Kept until a next pass, they would be a second copy of every Function.
    cache.onChange(({ type, object }) => {
      const key = keyOf(object);
      const written = this.#written.get(key);
      if (written && (type === "deleted" || !isOlder(object, written))) this.#written.delete(key);
    });
  }

  get(key: ObjectKey): Function | undefined {
    const cached = this.#cache.get(key);
    // What the cache does not know has been deleted since.
    return (cached && this.#written.get(key)) ?? cached;
  }

  /** The server's answer to a write. */
  wrote(key: ObjectKey, fn: Function): void {
    const cached = this.#cache.get(key);
    if (cached && isOlder(cached, fn)) this.#written.set(key, fn);
    else this.#written.delete(key);
  }

  /** How many the cache is behind with. */
  get behind(): number {
    return this.#written.size;
  }
}

/**
 * Resource versions of one kind grow as decimal numbers; where they do not, the cache is believed.
 */
function isOlder(a: Function, b: Function): boolean {
  const [left, right] = [a.metadata.resourceVersion ?? "", b.metadata.resourceVersion ?? ""];
  if (a.metadata.uid !== b.metadata.uid || !/^\d+$/.test(left) || !/^\d+$/.test(right))
    return false;
  return BigInt(left) < BigInt(right);
}
