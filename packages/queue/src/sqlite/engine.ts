import { DatabaseSync } from "node:sqlite";
import { type Clock } from "@spry/kube";
import { type QueueLimits } from "../queue.ts";
import { type Reply, type Request, troubleId } from "./protocol.ts";
import { type StoredConsumer } from "./consumers.ts";
import { type Lease } from "./deliveries.ts";
import { hashOf } from "./messages.ts";
import { Store } from "./store.ts";

const maintenanceMs = 10_000;
const retryMs = 1_000;
/** How long a consumer is left alone that cannot be served; a change of it is tried at once. */
const asideMs = 30_000;
/** What one pass of the maintenance removes; the rest is for the next, so that others are not held up. */
const maxRemoved = 2_000;
const busyPassMs = 20;
/** Messages that consumers look at in one pass, where space is tight. */
const maxLooked = 10_000;
/** Who has the largest backlog is looked for so often at most, and loses so many messages at a time. */
const shedMs = 5_000;
const maxShed = 5_000;
/** From this share of the limit on, what has been delivered is removed before its time. */
const tight = 0.8;

interface Seeker {
  id: number;
  max: number;
}

/**
 * Everything that arrives together is one transaction with one sync of the disk. What no promise has been given for
 * (who has handled what) is written along with it, or without a sync: losing it means handing out again.
 */
export class Engine {
  readonly #database: DatabaseSync;
  readonly #store: Store;
  readonly #limits: QueueLimits;
  readonly #clock: Clock;
  readonly #post: (replies: Reply[]) => void;
  #requests: Request[] = [];
  #isScheduled = false;
  #isClosed = false;
  /** Consumers that wait for messages, and those of them for which there may be some. */
  readonly #seekers = new Map<number, Seeker>();
  readonly #ready = new Set<number>();
  readonly #dueAt = new Map<number, number>();
  /** By the subjects' hashes; rebuilt when consumers change. */
  #consumersOf = new Map<number, number[]>();
  #consumersOfAll: number[] = [];
  /** Consumers whose owners have as much as they may have. */
  readonly #starved = new Set<number>();
  #shedFrom = 0;
  #cancelDue = () => {};
  #cancelMaintenance = () => {};

  constructor(file: string, limits: QueueLimits, clock: Clock, post: (replies: Reply[]) => void) {
    this.#database = new DatabaseSync(file);
    try {
      this.#store = new Store(this.#database, limits);
    } catch (error) {
      this.#database.close();
      throw error;
    }
    this.#limits = limits;
    this.#clock = clock;
    this.#post = post;
    this.#index();
    this.#maintainAfter(maintenanceMs);
  }

  receive(requests: readonly Request[]): void {
    this.#requests.push(...requests);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isClosed) return;
    this.#isScheduled = true;
    // What else has arrived by then is part of the same transaction.
    setImmediate(() => {
      this.#isScheduled = false;
      if (!this.#isClosed) this.#pass();
    });
  }

  #pass(): void {
    const requests = this.#requests;
    this.#requests = [];
    const replies: Reply[] = [];
    const isDurable = requests.some(({ op }) => durable.has(op));
    try {
      this.#transaction(isDurable, () => {
        for (const request of requests) {
          const error = this.#apart(() => this.#do(request, replies));
          if (error && request.id !== 0)
            replies.push({ id: request.id, error: messageOf(error), kind: "other" });
          else if (error) replies.push(trouble(`${request.op}: ${messageOf(error)}`));
        }
        this.#serve(replies);
      });
      this.#post(replies);
    } catch (error) {
      this.#failed(requests, error);
    }
    const closing = requests.find(({ op }) => op === "close");
    if (closing) this.#close(closing.id);
    else if (this.#ready.size > 0) this.#schedule();
    else this.#watchDue();
  }

  #transaction(isDurable: boolean, work: () => void): void {
    this.#database.exec(`PRAGMA synchronous = ${isDurable ? "FULL" : "NORMAL"}`);
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      work();
      this.#database.exec("COMMIT");
    } catch (error) {
      // Some errors have rolled it back already.
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  /**
   * One part of the transaction, which is undone alone when it fails: what one consumer asks for never undoes what another
   * client appends. Returns why; throws what is the database's own failure, and so everyone's.
   */
  #apart(work: () => void): Error | undefined {
    this.#database.exec("SAVEPOINT part");
    try {
      work();
      this.#database.exec("RELEASE part");
      return undefined;
    } catch (error) {
      if (!this.#database.isTransaction || isOfDatabase(error)) throw error;
      this.#database.exec("ROLLBACK TO part; RELEASE part");
      this.#store.reload();
      this.#index();
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  /** Nothing of the transaction has happened. What promises nothing to anyone is tried again later. */
  #failed(requests: readonly Request[], error: unknown): void {
    this.#store.reload();
    this.#index();
    for (const id of this.#seekers.keys()) this.#ready.delete(id);
    const kind = isFull(error) ? ("full" as const) : ("unavailable" as const);
    const isAlone = requests.length === 1;
    const promised = requests.filter(({ id }) => id !== 0);
    this.#post(
      promised
        .filter(({ op }) => op !== "next")
        .map(({ id }) => ({ id, error: messageOf(error), kind })),
    );
    const later = requests.filter(({ op }) => silent.has(op));
    if (isAlone && later.length === 0) return;
    this.#clock.after(retryMs, () => {
      this.receive(later);
      for (const id of this.#seekers.keys()) this.#ready.add(id);
    });
  }

  #do(request: Request, replies: Reply[]): void {
    const reply = (value: unknown) => {
      if (request.id !== 0) replies.push({ id: request.id, value });
    };
    const store = this.#store;
    const now = this.#clock.now();
    switch (request.op) {
      case "append": {
        const since = now - this.#limits.duplicatesMs;
        if (request.messages.length > 0 && store.liveBytes >= this.#limits.maxBytes) {
          const error = `it has reached its limit of ${this.#limits.maxBytes} bytes`;
          replies.push({ id: request.id, error, kind: "full" });
          this.#maintainAfter(0);
          return;
        }
        const appended = request.messages.map((message) =>
          store.messages.append(message, now, since),
        );
        for (const record of request.records) store.records.put(record);
        for (const { subject } of request.messages) this.#wake(subject);
        return reply(appended);
      }
      case "consumer": {
        const { id } = store.consumers.put(request.name, request.options);
        this.#index();
        this.#ready.add(id);
        return reply(id);
      }
      case "removeConsumer": {
        const known = store.consumers.find(request.name);
        if (known) store.removeConsumer(known);
        if (known) this.#maybeReady(known);
        this.#index();
        return reply(undefined);
      }
      case "find":
        return reply(store.consumers.find(request.name)?.id);
      case "consumerNames":
        return reply([...store.consumers.values()].map(({ name }) => name));
      case "next":
        this.#seekers.set(request.consumer, request);
        this.#ready.add(request.consumer);
        return undefined;
      case "cancelNext": {
        const seeker = this.#seekers.get(request.consumer);
        this.#seekers.delete(request.consumer);
        if (seeker) replies.push({ id: seeker.id, value: [] });
        return undefined;
      }
      case "read":
        return reply(store.messages.read(request.after, request.limit));
      case "head":
        return reply(store.messages.head);
      case "state": {
        const messages = store.messages.count;
        return reply({ messages, bytes: store.bytes, maxBytes: this.#limits.maxBytes });
      }
      case "remove":
        return reply(store.records.remove(request.bucket, request.key));
      case "get":
        return reply(store.records.get(request.bucket, request.key, now));
      case "list":
        return reply(store.records.list(request.bucket, request.after, request.limit, now));
      case "close":
        return undefined;
      default:
        return this.#doForConsumer(request, reply, now);
    }
  }

  #doForConsumer(
    request: Extract<Request, { consumer: number }>,
    reply: (value: unknown) => void,
    now: number,
  ): void {
    const store = this.#store;
    const consumer = store.consumers.get(request.consumer);
    // It has been removed: nothing of it is left.
    if (!consumer) return reply(undefined);
    switch (request.op) {
      case "ack":
        store.pending.ack(consumer, request.position);
        return this.#maybeReady(consumer);
      case "retry":
        store.pending.retry(consumer, request.position, now + request.afterMs);
        return this.#maybeReady(consumer);
      case "bury":
        store.deadLetters.bury(consumer, request.position, request.why, now);
        return this.#maybeReady(consumer);
      case "consumerState":
        return reply(store.consumerState(consumer));
      case "replay":
        store.consumers.replay(consumer, request);
        this.#ready.add(consumer.id);
        return reply(undefined);
      case "deadLetters":
        return reply(store.deadLetters.list(consumer, request.after, request.limit));
      case "redrive":
        this.#ready.add(consumer.id);
        return reply(store.deadLetters.redrive(consumer, request.ids, now));
      case "discard":
        return reply(store.deadLetters.discard(consumer, request.ids));
      default:
        return undefined;
    }
  }

  #maybeReady({ id }: StoredConsumer): void {
    for (const each of this.#starved) if (this.#seekers.has(each)) this.#ready.add(each);
    this.#starved.clear();
    if (this.#seekers.has(id)) this.#ready.add(id);
    else this.#dueAt.delete(id);
  }

  #wake(subject: string): void {
    for (const id of this.#consumersOf.get(hashOf(subject)) ?? [])
      if (this.#seekers.has(id)) this.#ready.add(id);
    for (const id of this.#consumersOfAll) if (this.#seekers.has(id)) this.#ready.add(id);
  }

  /** Gives what there is to consumers that wait. */
  #serve(replies: Reply[]): void {
    const now = this.#clock.now();
    for (const id of this.#ready) {
      this.#ready.delete(id);
      const seeker = this.#seekers.get(id);
      if (!seeker) continue;
      const consumer = this.#store.consumers.get(id);
      if (!consumer) {
        this.#seekers.delete(id);
        replies.push({ id: seeker.id, value: [] });
        continue;
      }
      let leased: Lease = { deliveries: [], hasMore: false };
      const error = this.#apart(() => {
        leased = this.#store.deliveries.lease(consumer, seeker.max, now, this.#limits.maxHeld);
      });
      if (error) {
        replies.push(trouble(`consumer ${consumer.name} is set aside: ${error.message}`));
        this.#clock.after(asideMs, () => {
          this.#ready.add(id);
          this.#schedule();
        });
        continue;
      }
      const { deliveries, hasMore, isStarved } = leased;
      if (isStarved) {
        this.#starved.add(id);
        continue;
      }
      if (deliveries.length > 0) {
        this.#seekers.delete(id);
        this.#dueAt.delete(id);
        replies.push({ id: seeker.id, value: deliveries });
      } else if (hasMore) {
        this.#requests.push({ op: "next", consumer: id, max: seeker.max, id: seeker.id });
        this.#schedule();
      } else {
        const due = this.#store.pending.nextDue(consumer);
        if (due === undefined) this.#dueAt.delete(id);
        else this.#dueAt.set(id, due);
      }
    }
  }

  /** One timer for the earliest retry of all who wait. */
  #watchDue(): void {
    this.#cancelDue();
    let earliest = Number.POSITIVE_INFINITY;
    for (const at of this.#dueAt.values()) earliest = Math.min(earliest, at);
    if (!Number.isFinite(earliest)) return;
    this.#cancelDue = this.#clock.after(Math.max(1, earliest - this.#clock.now()), () => {
      const now = this.#clock.now();
      for (const [id, at] of this.#dueAt)
        if (at <= now && this.#seekers.has(id)) this.#ready.add(id);
      this.#schedule();
    });
  }

  #index(): void {
    this.#consumersOf = new Map();
    this.#consumersOfAll = [];
    for (const { id, subjects, hashes } of this.#store.consumers.values()) {
      if (subjects === "all") this.#consumersOfAll.push(id);
      for (const each of hashes) {
        const ids = this.#consumersOf.get(each);
        if (ids) ids.push(id);
        else this.#consumersOf.set(each, [id]);
      }
    }
  }

  #maintainAfter(ms: number): void {
    this.#cancelMaintenance();
    this.#cancelMaintenance = this.#clock.after(ms, () => {
      let isBusy = false;
      try {
        isBusy = this.#maintain();
      } catch (error) {
        this.#store.reload();
        this.#post([trouble(`cleaning up: ${messageOf(error)}`)]);
      }
      if (!this.#isClosed) this.#maintainAfter(isBusy ? busyPassMs : maintenanceMs);
    });
  }

  /** Whether there is more to do at once. */
  #maintain(): boolean {
    if (this.#isClosed) return false;
    const { maxAgeMs, maxBytes } = this.#limits;
    const now = this.#clock.now();
    const store = this.#store;
    let handled = 0;
    this.#transaction(false, () => {
      store.records.removeExpired(now);
      const why = { reason: "Expired", message: `not delivered within ${maxAgeMs / 1000} s` };
      // A failure loads all of them again.
      const ids = [...store.consumers.ids()];
      for (const id of ids) {
        const error = this.#apart(() => {
          const consumer = store.consumers.get(id);
          if (consumer)
            handled += store.retention.expire(consumer, now - maxAgeMs, maxRemoved, now, why);
        });
        if (error) this.#post([trouble(`cleaning up: ${error.message}`)]);
      }
      const isTight = store.liveBytes > maxBytes * tight;
      // One that is slow must not keep what others have done with.
      let looked = 0;
      for (const id of isTight ? ids : []) {
        const error = this.#apart(() => {
          const consumer = store.consumers.get(id);
          if (consumer && looked < maxLooked)
            looked += store.retention.look(consumer, maxLooked - looked, now);
        });
        if (error) this.#post([trouble(`cleaning up: ${error.message}`)]);
      }
      if (looked >= maxLooked) handled += maxRemoved;
      const done = store.retention.advanceCursors();
      handled += store.retention.removeDone(done, isTight ? now + 1 : now - maxAgeMs, maxRemoved);
      const excess = store.liveBytes - maxBytes * tight;
      if (excess <= 0 || now < this.#shedFrom) return;
      this.#shedFrom = now + shedMs;
      const full = {
        reason: "QueueFull",
        message: "the queue is full, and this is its largest backlog",
      };
      if (store.retention.shed(excess, maxShed, now, full) > 0)
        store.retention.removeDone(store.retention.advanceCursors(), now + 1, maxShed);
    });
    return handled >= maxRemoved;
  }

  #close(id: number): void {
    this.#isClosed = true;
    this.#cancelDue();
    this.#cancelMaintenance();
    this.#database.close();
    this.#post([{ id, value: undefined }]);
  }
}

/** What an answer promises to be on disk. */
const durable = new Set<Request["op"]>([
  "append",
  "consumer",
  "removeConsumer",
  "remove",
  "redrive",
  "discard",
  "replay",
]);
/** What is never answered with an error: it must happen all the same, and is done later. */
const silent = new Set<Request["op"]>(["ack", "retry", "bury", "next", "cancelNext"]);

/** Without `@spry/kube`: the thread loads as little as it can. */
function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const trouble = (error: string): Reply => ({ id: troubleId, error, kind: "other" });

/** Of SQLite itself (https://nodejs.org/api/errors.html): the disk, or the file. */
function isOfDatabase(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_SQLITE_ERROR";
}

function isFull(error: unknown): boolean {
  return /SQLITE_FULL|disk is full|ENOSPC/i.test(messageOf(error));
}
