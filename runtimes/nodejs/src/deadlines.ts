import { monotonicMs } from "./clock.ts";

/** Something that is called when its time is over, unless it is removed before. It is in one list only, and once. */
export interface Waiting {
  /** By `monotonicMs`. */
  endMs: number;
  timeIsOver(): void;
  previous?: this | undefined;
  next?: this | undefined;
}

/**
 * Those that wait, all for the same length of time: the first that came is the first whose time is over.
 * One timer for all of them: one each would be a twentieth of what a request costs.
 */
export class Deadlines<T extends Waiting> {
  #first: T | undefined;
  #last: T | undefined;
  #isTimed = false;

  enter(waiting: T): void {
    waiting.previous = this.#last;
    if (this.#last) this.#last.next = waiting;
    else this.#first = waiting;
    this.#last = waiting;
    if (!this.#isTimed) this.#wakeFor(waiting);
  }

  leave(waiting: T): void {
    const { previous, next } = waiting;
    if (previous) previous.next = next;
    else if (this.#first === waiting) this.#first = next;
    else return;
    if (next) next.previous = previous;
    else this.#last = previous;
    waiting.previous = waiting.next = undefined;
  }

  /** The longest waiting first. */
  *[Symbol.iterator](): Generator<T> {
    for (let each = this.#first; each; each = each.next) yield each;
  }

  #wakeFor({ endMs }: T): void {
    this.#isTimed = true;
    // A timer may come a little early, by this clock. What waits has a connection, which keeps the process.
    setTimeout(() => this.#wake(), Math.max(1, Math.ceil(endMs - monotonicMs()))).unref();
  }

  #wake(): void {
    this.#isTimed = false;
    const now = monotonicMs();
    for (let first = this.#first; first && first.endMs <= now; first = this.#first) {
      this.leave(first);
      first.timeIsOver();
    }
    if (this.#first && !this.#isTimed) this.#wakeFor(this.#first);
  }
}
