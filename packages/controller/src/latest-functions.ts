import { type Function } from "@spry/function";
import { type Informer, type ObjectKey } from "@spry/kube";

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
  }

  get(key: ObjectKey): Function | undefined {
    const cached = this.#cache.get(key);
    const written = this.#written.get(key);
    if (written && cached && isOlder(cached, written)) return written;
    this.#written.delete(key);
    return cached;
  }

  /** The server's answer to a write. */
  wrote(key: ObjectKey, fn: Function): void {
    this.#written.set(key, fn);
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
