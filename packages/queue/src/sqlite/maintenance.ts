import { type Clock } from "@spry/kube";
import { expired } from "../expired.ts";
import { type QueueLimits } from "../queue.ts";
import { messageOf, trouble } from "./failures.ts";
import { type Reply } from "./protocol.ts";
import { type Store } from "./store.ts";
import { type Transactions } from "./transactions.ts";

const maintenanceMs = 10_000;
/** What one pass removes; the rest is for the next, so that others are not held up. */
const maxRemoved = 2_000;
const busyPassMs = 20;
/** A pass takes at most half of the thread's time, and never longer than this is waited for the next. */
const maxPauseMs = 1_000;
/** Messages that consumers look at in one pass, where space is tight. */
const maxLooked = 10_000;
/** Who has the largest backlog is looked for so often at most, and loses so many messages at a time. */
const shedMs = 5_000;
const maxShed = 5_000;
/** From this share of the limit on, what has been delivered is removed before its time. */
const tight = 0.8;

/** Removes what is too old, and makes room: every ten seconds, or sooner while there is more to do. */
export class Maintenance {
  readonly #store: Store;
  readonly #transactions: Transactions;
  readonly #limits: QueueLimits;
  readonly #clock: Clock;
  readonly #post: (replies: Reply[]) => void;
  #isClosed = false;
  #isSoon = false;
  #shedFrom = 0;
  /** Until then the thread belongs to others, in milliseconds of `performance.now()`. */
  #restsUntil = 0;
  #cancel = () => {};

  constructor(
    store: Store,
    transactions: Transactions,
    limits: QueueLimits,
    clock: Clock,
    post: (replies: Reply[]) => void,
  ) {
    this.#store = store;
    this.#transactions = transactions;
    this.#limits = limits;
    this.#clock = clock;
    this.#post = post;
    this.#after(maintenanceMs);
  }

  /** As soon as what is being done has been done, but not right after a pass that took long. Further calls do not put it off. */
  soon(): void {
    if (this.#isSoon) return;
    this.#isSoon = true;
    this.#after(0);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #after(ms: number): void {
    this.#cancel();
    const rest = this.#restsUntil - performance.now();
    this.#cancel = this.#clock.after(Math.max(ms, rest), () => {
      this.#isSoon = false;
      let isBusy = false;
      const begin = performance.now();
      try {
        isBusy = this.#pass();
      } catch (error) {
        this.#store.reload();
        this.#trouble(error);
      }
      const end = performance.now();
      this.#restsUntil = end + Math.min(end - begin, maxPauseMs);
      if (!this.#isClosed) this.#after(isBusy ? busyPassMs : maintenanceMs);
    });
  }

  /** Whether there is more to do at once. */
  #pass(): boolean {
    if (this.#isClosed) return false;
    const now = this.#clock.now();
    let handled = 0;
    this.#transactions.whole(false, () => {
      const { records, retention } = this.#store;
      const expiry = now - this.#limits.maxAgeMs;
      records.removeExpired(now);
      // Without it, each pass would read the whole log to find that all of it is young.
      const old = this.#store.messages.lastBefore(expiry);
      if (old !== undefined) handled += this.#expire(old, expiry, now);
      handled += this.#endOverdue(now);
      const isTight = this.#excess() > 0;
      if (isTight && this.#look(now)) handled += maxRemoved;
      const done = retention.advanceCursors();
      if (isTight) handled += retention.removeDone(done, now + 1, maxRemoved);
      else if (old !== undefined)
        handled += retention.removeDone(Math.min(done, old), expiry, maxRemoved);
      this.#shed(now);
    });
    return handled >= maxRemoved;
  }

  /** What was accepted before that time; nothing of it is behind `last`. */
  #expire(last: number, before: number, now: number): number {
    const { consumers, retention } = this.#store;
    const whyOf = (failures: number) => expired(failures, this.#limits.maxAgeMs);
    let handled = 0;
    this.#forEachConsumer((id) => {
      const consumer = consumers.get(id);
      if (consumer)
        handled += retention.expire(consumer, { last, before, limit: maxRemoved }, now, whyOf);
    });
    return handled;
  }

  /** What consumers with a deadline of their own have not handled by then. */
  #endOverdue(now: number): number {
    const { consumers, messages, retention } = this.#store;
    let handled = 0;
    this.#forEachConsumer((id) => {
      const consumer = consumers.get(id);
      const deadlineMs = consumer?.deadlineMs;
      if (!consumer || deadlineMs === undefined) return;
      const before = now - deadlineMs;
      const last = messages.latestBefore(before);
      if (last === undefined) return;
      const whyOf = (failures: number) => expired(failures, deadlineMs, "DeadlineExceeded");
      handled += retention.expire(consumer, { last, before, limit: maxRemoved }, now, whyOf);
    });
    return handled;
  }

  /** One that is slow must not keep what others have done with. Whether there is more to look at. */
  #look(now: number): boolean {
    const { consumers, retention } = this.#store;
    let looked = 0;
    this.#forEachConsumer((id) => {
      const consumer = consumers.get(id);
      if (consumer && looked < maxLooked)
        looked += retention.look(consumer, maxLooked - looked, now);
    });
    return looked >= maxLooked;
  }

  /** What is still too much after all that. */
  #shed(now: number): void {
    const excess = this.#excess();
    if (excess <= 0 || now < this.#shedFrom) return;
    this.#shedFrom = now + shedMs;
    const message = "the queue is full, and this is its largest backlog";
    const { retention } = this.#store;
    if (retention.shed(excess, maxShed, now, { reason: "QueueFull", message }) > 0)
      retention.removeDone(retention.advanceCursors(), now + 1, maxShed);
  }

  /** Bytes beyond what may be used before it is tight. */
  #excess(): number {
    return this.#store.liveBytes - this.#limits.maxBytes * tight;
  }

  /** Each is a part of the transaction: a failure of one undoes nothing of others. */
  #forEachConsumer(work: (id: number) => void): void {
    // A failure loads all of them again.
    const ids = [...this.#store.consumers.ids()];
    for (const id of ids) {
      const error = this.#transactions.part(() => work(id));
      if (error) this.#trouble(error);
    }
  }

  #trouble(error: unknown): void {
    this.#post([trouble(`cleaning up: ${messageOf(error)}`)]);
  }
}
