import { OwnerQueue, sliceMs } from "@spry/kube";

/** The pause after a slice is as long as the work was, but not longer than this, in milliseconds. */
const longestPauseMs = 50;
/** Characters of JSON that are written in another encoding without a turn. */
const smallLength = 16 * 1024;

const waiting = new OwnerQueue<() => void>();
let isTaken = false;
let until = 0;

function next(): void {
  const start = waiting.next();
  if (!start) {
    isTaken = false;
    return;
  }
  const begin = performance.now();
  until = begin + sliceMs();
  start();
  // The slice begins when this returns.
  setImmediate(() => setTimeout(next, Math.min(performance.now() - begin, longestPauseMs)));
}

/**
 * The work of one request that writes objects in another encoding than they are stored in. Of all such requests one at a time works for
 * a slice of time, their owners one after the other, and together they have half of the processor. Small work needs no turn.
 */
export class EncodingTurns {
  readonly #owner: string;
  #smallLeft = smallLength;
  #hasTurn = false;

  constructor(owner: string) {
    this.#owner = owner;
  }

  /**
   * Called before `length` characters of JSON are encoded: undefined if that may be done at once, otherwise a promise that resolves when it is
   * the request's turn; what follows until the next await is its slice.
   */
  before(length: number): Promise<void> | undefined {
    this.#smallLeft -= length;
    if (this.#smallLeft >= 0) return undefined;
    if (this.#hasTurn && performance.now() < until) return undefined;
    this.#hasTurn = true;
    return new Promise((resolve) => {
      waiting.add(this.#owner, resolve);
      if (isTaken) return;
      isTaken = true;
      setImmediate(next);
    });
  }
}
