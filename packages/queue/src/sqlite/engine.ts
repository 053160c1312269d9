import { DatabaseSync } from "node:sqlite";
import { type Clock } from "@spry/kube";
import { type QueueLimits } from "../queue.ts";
import { isFull, messageOf, trouble } from "./failures.ts";
import { clockJumps } from "./clock-jumps.ts";
import { Maintenance } from "./maintenance.ts";
import { type Reply, type Request } from "./protocol.ts";
import { Seekers } from "./seekers.ts";
import { Store } from "./store.ts";
import { Transactions } from "./transactions.ts";

/** What could not be done because of the disk is tried again after this. */
const retryMs = 1_000;
const leastBackMs = 1_000;

/**
 * Everything that arrives together is one transaction with one sync of the disk. What no promise has been given for
 * (who has handled what) is written along with it, or without a sync: losing it means handing out again.
 */
export class Engine {
  readonly #database: DatabaseSync;
  readonly #store: Store;
  readonly #transactions: Transactions;
  readonly #seekers: Seekers;
  readonly #maintenance: Maintenance;
  readonly #limits: QueueLimits;
  readonly #clock: Clock;
  readonly #post: (replies: Reply[]) => void;
  readonly #clockSetBy: () => number;
  #requests: Request[] = [];
  #isScheduled = false;
  #isClosed = false;

  constructor(file: string, limits: QueueLimits, clock: Clock, post: (replies: Reply[]) => void) {
    const database = new DatabaseSync(file);
    try {
      this.#store = new Store(database, limits);
    } catch (error) {
      database.close();
      throw error;
    }
    const store = this.#store;
    store.messages.loadKeys(clock.now() - limits.duplicatesMs);
    const again = (requests: Request[]) => this.receive(requests);
    const transactions = new Transactions(database, () => this.#reload());
    this.#seekers = new Seekers(store, transactions, clock, limits.maxHeld, again);
    this.#maintenance = new Maintenance(store, transactions, limits, clock, post);
    this.#transactions = transactions;
    this.#database = database;
    this.#limits = limits;
    this.#clock = clock;
    this.#post = post;
    this.#clockSetBy = clockJumps(clock);
    // It has been set back while nothing ran: by no less than this.
    const backMs = (store.messages.latestAt() ?? 0) - clock.now();
    if (backMs > leastBackMs) store.clockSetBack(backMs, clock.now());
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
      this.#transactions.whole(isDurable, () => {
        this.#heedClock();
        for (const request of requests) {
          const error = this.#transactions.part(() => this.#do(request, replies));
          if (error && request.id !== 0)
            replies.push({ id: request.id, error: messageOf(error), kind: "other" });
          else if (error) replies.push(trouble(`${request.op}: ${messageOf(error)}`));
        }
        this.#seekers.serve(replies);
      });
      this.#post(replies);
    } catch (error) {
      this.#failed(requests, error);
    }
    const closing = requests.find(({ op }) => op === "close");
    if (closing) this.#close(closing.id);
    else if (this.#seekers.hasReady) this.#schedule();
    else this.#seekers.watchDue();
  }

  /** Forward, what waits is due the sooner. */
  #heedClock(): void {
    const byMs = this.#clockSetBy();
    if (byMs >= 0) return;
    this.#store.clockSetBack(-byMs, this.#clock.now());
    this.#seekers.markAllReady();
  }

  /** Nothing of the transaction has happened. What promises nothing to anyone is tried again later. */
  #failed(requests: readonly Request[], error: unknown): void {
    this.#reload();
    // Otherwise the next pass would begin at once, and fail again.
    this.#seekers.markNoneReady();
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
      this.#seekers.markAllReady();
    });
  }

  #reload(): void {
    this.#store.reload();
    this.#seekers.consumersChanged();
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
          this.#maintenance.soon();
          return;
        }
        const changed = request.records.find((record) => !store.records.isStill(record, now));
        if (changed) {
          const error = `${changed.bucket}/${changed.key}`;
          replies.push({ id: request.id, error, kind: "changed" });
          return;
        }
        const appended = request.messages.map((message) =>
          store.messages.append(message, now, since),
        );
        for (const record of request.records) store.records.put(record);
        for (const { subject } of request.messages) this.#seekers.wake(subject);
        return reply(appended);
      }
      case "consumer": {
        const { id } = store.consumers.put(request.name, request.options);
        this.#seekers.consumersChanged();
        this.#seekers.markReady(id);
        return reply(id);
      }
      case "removeConsumer": {
        const known = store.consumers.find(request.name);
        if (known) store.removeConsumer(known);
        if (known) this.#seekers.cameBack(known.id);
        this.#seekers.consumersChanged();
        return reply(undefined);
      }
      case "find":
        return reply(store.consumers.find(request.name)?.id);
      case "consumerNames":
        return reply([...store.consumers.values()].map(({ name }) => name));
      case "next":
        return this.#seekers.add(request);
      case "cancelNext":
        return this.#seekers.cancel(request.consumer, replies);
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
        return this.#seekers.cameBack(consumer.id);
      case "retry":
        store.pending.retry(consumer, request.position, now + request.afterMs, request.counts);
        return this.#seekers.cameBack(consumer.id);
      case "bury":
        store.deadLetters.bury(consumer, request.position, request.why, now, request.counts);
        return this.#seekers.cameBack(consumer.id);
      case "consumerState":
        return reply(store.consumerState(consumer));
      case "replay":
        store.consumers.replay(consumer, request);
        this.#seekers.markReady(consumer.id);
        return reply(undefined);
      case "deadLetters":
        return reply(store.deadLetters.list(consumer, request.after, request.limit));
      case "redrive":
        this.#seekers.markReady(consumer.id);
        return reply(store.deadLetters.redrive(consumer, request.ids, now));
      case "discard":
        return reply(store.deadLetters.discard(consumer, request.ids));
      default:
        return undefined;
    }
  }

  #close(id: number): void {
    this.#isClosed = true;
    this.#seekers.close();
    this.#maintenance.close();
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
