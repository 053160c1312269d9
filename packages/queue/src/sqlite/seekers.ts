import { type Clock } from "@spry/kube";
import { clockJumps } from "./clock-jumps.ts";
import { type Lease } from "./deliveries.ts";
import { trouble } from "./failures.ts";
import { type Reply, type Request } from "./protocol.ts";
import { type Store } from "./store.ts";
import { SubjectIndex } from "./subject-index.ts";
import { type Transactions } from "./transactions.ts";

/** How long a consumer is left alone that cannot be served; a change of it is tried at once. */
const asideMs = 30_000;

/** Times are the machine's clock's: whether it has been set is looked at so often while something is waited for. */
const lookMs = 5_000;

/** A consumer's request for messages, which is answered when there are some. */
type Seeker = Extract<Request, { op: "next" }>;

/** Consumers that wait for messages: for which of them there may be some, and when. */
export class Seekers {
  readonly #store: Store;
  readonly #transactions: Transactions;
  readonly #clock: Clock;
  readonly #maxHeld: number;
  readonly #again: (requests: Request[]) => void;
  readonly #waiting = new Map<number, Seeker>();
  /** Those for which there may be some; also some that do not wait, or no longer exist. */
  readonly #ready = new Set<number>();
  readonly #dueAt = new Map<number, number>();
  /** Those whose owners have as much as they may have. */
  readonly #starved = new Set<number>();
  readonly #index = new SubjectIndex();
  readonly #clockSetBy: () => number;
  #cancelDue = () => {};

  /** `again` asks for another pass, with these requests as part of it. */
  constructor(
    store: Store,
    transactions: Transactions,
    clock: Clock,
    maxHeld: number,
    again: (requests: Request[]) => void,
  ) {
    this.#store = store;
    this.#transactions = transactions;
    this.#clock = clock;
    this.#maxHeld = maxHeld;
    this.#again = again;
    this.#clockSetBy = clockJumps(clock);
    this.consumersChanged();
  }

  consumersChanged(): void {
    this.#index.rebuild(this.#store.consumers.values());
  }

  add(seeker: Seeker): void {
    this.#waiting.set(seeker.consumer, seeker);
    this.#ready.add(seeker.consumer);
  }

  cancel(consumer: number, replies: Reply[]): void {
    const seeker = this.#waiting.get(consumer);
    this.#waiting.delete(consumer);
    if (seeker) replies.push({ id: seeker.id, value: [] });
  }

  get hasReady(): boolean {
    return this.#ready.size > 0;
  }

  /** There may be messages for this consumer. */
  markReady(id: number): void {
    this.#ready.add(id);
  }

  markAllReady(): void {
    for (const id of this.#waiting.keys()) this.#ready.add(id);
  }

  markNoneReady(): void {
    for (const id of this.#waiting.keys()) this.#ready.delete(id);
  }

  /** A message of this subject has been accepted. */
  wake(subject: string): void {
    this.#index.forEach(subject, (id) => {
      if (this.#waiting.has(id)) this.#ready.add(id);
    });
  }

  /** Something of this consumer has come back: its next may follow, and others may have what it took of the memory. */
  cameBack(id: number): void {
    for (const each of this.#starved) if (this.#waiting.has(each)) this.#ready.add(each);
    this.#starved.clear();
    if (this.#waiting.has(id)) this.#ready.add(id);
    else this.#dueAt.delete(id);
  }

  /** Gives what there is to those that are ready; each is a part of the transaction. */
  serve(replies: Reply[]): void {
    const now = this.#clock.now();
    for (const id of this.#ready) {
      this.#ready.delete(id);
      const seeker = this.#waiting.get(id);
      if (seeker) this.#serveOne(seeker, replies, now);
    }
  }

  #serveOne(seeker: Seeker, replies: Reply[], now: number): void {
    const { consumer: id, max } = seeker;
    const consumer = this.#store.consumers.get(id);
    // It has been removed.
    if (!consumer) return this.cancel(id, replies);
    let lease: Lease = { deliveries: [], hasMore: false };
    const error = this.#transactions.part(() => {
      lease = this.#store.deliveries.lease(consumer, max, now, this.#maxHeld);
    });
    if (error) {
      replies.push(trouble(`consumer ${consumer.name} failed and is paused: ${error.message}`));
      this.#clock.after(asideMs, () => {
        this.#ready.add(id);
        this.#again([]);
      });
      return;
    }
    const { deliveries, hasMore, isStarved } = lease;
    if (isStarved) {
      this.#starved.add(id);
    } else if (deliveries.length > 0) {
      this.#waiting.delete(id);
      this.#dueAt.delete(id);
      replies.push({ id: seeker.id, value: deliveries });
    } else if (hasMore) {
      // In a pass of its own, so that others are not held up by one that passes over many messages.
      this.#again([seeker]);
    } else {
      const due = this.#store.pending.nextDue(consumer);
      if (due === undefined) this.#dueAt.delete(id);
      else this.#dueAt.set(id, due);
    }
  }

  /** One timer for the earliest retry of all who wait. */
  watchDue(): void {
    this.#cancelDue();
    let earliest = Number.POSITIVE_INFINITY;
    for (const at of this.#dueAt.values()) earliest = Math.min(earliest, at);
    if (!Number.isFinite(earliest)) return;
    const leftMs = earliest - this.#clock.now();
    this.#cancelDue = this.#clock.after(Math.min(Math.max(1, leftMs), lookMs), () => {
      const now = this.#clock.now();
      let isDue = this.#clockSetBy() !== 0;
      for (const [id, at] of this.#dueAt) {
        if (at > now) continue;
        isDue = true;
        if (this.#waiting.has(id)) this.#ready.add(id);
      }
      if (isDue) this.#again([]);
      else this.watchDue();
    });
  }

  close(): void {
    this.#cancelDue();
  }
}
