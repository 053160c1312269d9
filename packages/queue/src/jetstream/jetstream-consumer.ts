import { type Msg } from "@nats-io/transport-node";
import { type Logger, messageOf } from "@spry/kube";
import { attributeOf, matches } from "../filter.ts";
import {
  type Consumer,
  type ConsumerOptions,
  type ConsumerState,
  type DeadLetter,
  type Delivery,
  type Message,
  type QueueLimits,
  type ReplayFrom,
  type TryOptions,
  type Verdict,
} from "../queue.ts";
import { expired } from "../expired.ts";
import { type Shares } from "../shares.ts";
import { DeadLetters } from "./dead-letters.ts";
import { deliveryOf, nak } from "./acknowledgement.ts";
import { decode } from "./frame.ts";
import { type Lease, rowBytes } from "./lease.ts";
import { Order } from "./order.ts";
import { type Link, type Publishing } from "./publishing.ts";
import { Puller } from "./puller.ts";
import { type Records } from "./records.ts";
import { type ServerConsumer } from "./server-consumer.ts";
import { Tries } from "./tries.ts";

export interface ConsumerDeps {
  link: Link;
  publishing: Publishing;
  records: Records;
  limits: QueueLimits;
  /** Of what is handed out. */
  shares: Shares;
  /** Something has come back: others may have what it took of the memory. */
  freed: () => void;
  log: Logger;
}

/** What is handed out at a time: messages may be large. */
const maxLeased = 64;
const maxLeasedBytes = 2 * 1024 ** 2;
const asideMs = 30_000;
/** Three are as long as the server waits for an acknowledgement. */
const ticksOfDone = 6;
const settlePauseMs = 20;
const settleTries = 25;
/** Longer than the server keeps a message. */
const triesGraceMs = 48 * 3_600_000;

/** What this process knows of a message that comes back. */
interface Earlier {
  /** 0: it has not been handed out yet. */
  firstAt: number;
  failures: number;
  /** It is not handed out before, by `performance.now()`. */
  until?: number;
}

const notYet: Earlier = { firstAt: 0, failures: 0 };

/** A consumer of JetStream, from which this process takes. */
export class JetStreamConsumer implements Consumer {
  readonly name: string;
  readonly #deps: ConsumerDeps;
  readonly #server: ServerConsumer;
  readonly #letters: DeadLetters;
  readonly #tries: Tries;
  readonly #puller: Puller;
  #options: ConsumerOptions;
  /** By position: everything that the server counts as handed out to this process. */
  readonly #leases = new Map<number, Lease>();
  readonly #order = new Order<Lease>();
  #ready: Lease[] = [];
  /** Those that the server keeps for their next attempt. */
  readonly #retrying = new Map<number, Earlier>();
  /** Those whose failures are being looked up, with what an acknowledgement is sent to. */
  readonly #recalling = new Map<number, Msg>();
  /** Of an earlier process, and not handed out again yet: nothing may overtake them where there is an order. */
  #expected = 0;
  #early: { lease: Lease; order: string }[] = [];
  /** Acknowledged a short time ago: the server may hand them out once more before it has noted that. */
  #done = new Set<number>();
  #doneBefore = new Set<number>();
  readonly #pending = new Set<Promise<void>>();
  #ticks = 0;
  #arrived = () => {};
  #dropped = 0;
  /** Whether it is this process that takes from it. */
  #takes = false;
  #isClosed = false;

  constructor(
    name: string,
    options: ConsumerOptions,
    server: ServerConsumer,
    pending: number,
    deps: ConsumerDeps,
  ) {
    this.name = name;
    this.#options = options;
    this.#server = server;
    this.#deps = deps;
    this.#letters = new DeadLetters(deps.link, deps.publishing, name);
    const { records, publishing, limits } = deps;
    this.#tries = new Tries(records, publishing, name, limits.maxAgeMs + triesGraceMs);
    this.#puller = new Puller(deps.link.connection, server.nextSubject, (message) =>
      this.#receive(message),
    );
    if (options.orderBy !== undefined) this.#expect(pending);
  }

  get owner(): string {
    return this.#options.owner ?? this.name;
  }
  get leases(): Iterable<Lease> {
    return this.#leases.values();
  }

  use(options: ConsumerOptions): void {
    this.#options = options;
  }

  async next(max: number, signal: AbortSignal): Promise<Delivery[]> {
    this.#takes = true;
    const stopped = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    while (!signal.aborted && !this.#isClosed) {
      if (this.#ready.length > 0) {
        this.#puller.wantNone();
        return this.#ready.splice(0, Math.min(max, maxLeased)).map((lease) => this.#handOut(lease));
      }
      const arrival = new Promise<void>((resolve) => (this.#arrived = resolve));
      this.wake(max);
      await Promise.race([arrival, stopped]);
    }
    this.#puller.wantNone();
    return [];
  }

  /** Asks the server, unless the owner has as much as it may have. */
  wake(max = 1): void {
    const room = Math.min(maxLeasedBytes, this.#deps.shares.room(this.owner));
    if (room <= 0 || this.#order.held + this.#early.length >= this.#deps.limits.maxHeld) return;
    // The first one always: otherwise one that is larger than what is left would wait for ever.
    const maxBytes = Math.max(room, this.#deps.link.connection.info?.max_payload ?? 0);
    this.#puller.want(Math.max(Math.min(max, maxLeased), Math.min(this.#expected, 500)), maxBytes);
  }

  /** There may be room again. */
  roomAgain(): void {
    this.#arrived();
  }

  #handOut(lease: Lease): Delivery {
    lease.state = "out";
    const { message, attempt, failures, firstAt } = lease;
    return {
      message,
      attempt,
      failures,
      firstAt,
      ack: () => this.#ack(lease),
      retry: (afterMs, options) => this.#retry(lease, afterMs, options),
      bury: (why, options) => this.#bury(lease, why, options),
    };
  }

  #receive(raw: Msg): void {
    const { reply = "" } = raw;
    const { position, at, deliveryCount } = deliveryOf(reply);
    // Its heartbeat came too late: it is here already.
    const known = this.#leases.get(position);
    if (known) {
      known.reply = reply;
      return;
    }
    if (this.#done.has(position) || this.#doneBefore.has(position))
      return this.#send(reply, "+ACK");
    const earlier = this.#retrying.get(position);
    // An earlier process has had it: how it fared there is written down.
    if (!earlier && deliveryCount > 1) return this.#recall(raw, position, at);
    this.#use(raw, earlier ?? notYet);
  }

  #recall(raw: Msg, position: number, at: number): void {
    const isAlready = this.#recalling.has(position);
    this.#recalling.set(position, raw);
    if (isAlready) return;
    const recalled = this.#recalled(position, at).finally(() => this.#pending.delete(recalled));
    this.#pending.add(recalled);
  }

  async #recalled(position: number, at: number): Promise<void> {
    try {
      const failures = await this.#tries.get(position);
      const latest = this.#recalling.get(position);
      this.#recalling.delete(position);
      // Otherwise the consumer has begun again, and gets it once more.
      if (latest && !this.#isClosed) this.#use(latest, { firstAt: at, failures });
    } catch (error) {
      this.#deps.log.warn(
        { consumer: this.name, error: messageOf(error) },
        "looking up a message's failures, trying again",
      );
      const latest = this.#recalling.get(position);
      this.#recalling.delete(position);
      if (latest) this.#send(latest.reply ?? "", nak(1_000));
    }
  }

  #use(raw: Msg, { firstAt, failures, until }: Earlier): void {
    const { reply = "" } = raw;
    const { position, at, deliveryCount } = deliveryOf(reply);
    this.#retrying.delete(position);
    const isPrivate = raw.subject === this.#deps.link.names.private(this.name);
    const message = decode(raw.data, position, at)?.message;
    if (!message || !this.#wants(message, isPrivate, position, reply)) return;
    const { notBefore = 0 } = message;
    // The machine's clock is looked at once: it may be set while the message waits. Nothing waits for longer than it was to.
    const now = performance.now();
    const wait =
      until === undefined ? Math.min(notBefore - Date.now(), notBefore - at) : until - now;
    if (wait > 0) {
      this.#retrying.set(position, { ...notYet, until: now + wait });
      return this.#send(reply, nak(wait));
    }
    // The server handed it out before its time, and learns now when to do it again.
    const attempt = Math.max(1, deliveryCount - (notBefore > at ? 1 : 0));
    const { orderBy } = this.#options;
    const order = orderBy === undefined ? undefined : attributeOf(message.attributes, orderBy);
    const bytes = message.body.length + rowBytes;
    const lease: Lease = {
      message,
      attempt,
      failures,
      reply,
      order,
      bytes,
      state: "held",
      firstAt: firstAt || Date.now(),
    };
    this.#leases.set(position, lease);
    this.#deps.shares.add(this.owner, bytes);
    const { maxAgeMs } = this.#deps.limits;
    if (Math.max(at, notBefore) < Date.now() - maxAgeMs) return this.expire(lease);
    if (order === undefined) return this.#isReady(lease);
    if (this.#expected > 0) {
      this.#early.push({ lease, order });
      if (deliveryCount > 1 && --this.#expected === 0) this.#settleOrder();
      return;
    }
    if (this.#order.enter(order, lease)) this.#isReady(lease);
  }

  /** Undelivered for longer than messages are kept. */
  expire(lease: Lease): void {
    this.#bury(lease, expired(lease.failures, this.#deps.limits.maxAgeMs), { counts: false });
  }

  #wants(message: Message, isPrivate: boolean, position: number, reply: string): boolean {
    const { subjects, filter } = this.#options;
    try {
      const isWanted =
        isPrivate ||
        ((subjects === "all" || subjects.includes(message.subject)) &&
          matches(filter, message.attributes));
      if (!isWanted) this.#send(reply, "+ACK");
      return isWanted;
    } catch (error) {
      this.#deps.log.error(
        { consumer: this.name, error: messageOf(error) },
        "a consumer of the queue failed and is paused",
      );
      this.#retrying.set(position, notYet);
      this.#send(reply, nak(asideMs));
      return false;
    }
  }

  #isReady(lease: Lease): void {
    lease.state = "ready";
    this.#ready.push(lease);
    this.#arrived();
  }

  /** After a crash: what the last process had is handed out again by the server, in any order. */
  #expect(pending: number): void {
    this.#expected = pending;
    if (pending === 0) return;
    // One of them may have been removed.
    const timer = setTimeout(() => this.#settleOrder(), 3 * this.#server.ackWaitMs);
    timer.unref();
  }

  #settleOrder(): void {
    this.#expected = 0;
    const early = this.#early.sort((a, b) => a.lease.message.position - b.lease.message.position);
    this.#early = [];
    for (const { lease, order } of early) if (this.#order.enter(order, lease)) this.#isReady(lease);
  }

  #ack(lease: Lease): void {
    if (!this.#take(lease)) return;
    this.#done.add(lease.message.position);
    this.#send(lease.reply, "+ACK");
    this.#forgetTries(lease);
    this.#release(lease);
  }

  #retry(lease: Lease, afterMs: number, { counts = true }: TryOptions = {}): void {
    if (!this.#isHere(lease)) return;
    const failures = lease.failures + (counts ? 1 : 0);
    const noted = counts ? this.#noteTries(lease, failures) : undefined;
    if (lease.order !== undefined) return this.#retryHere(lease, failures, afterMs);
    this.#take(lease);
    this.#retrying.set(lease.message.position, { firstAt: lease.firstAt, failures });
    const giveBack = () => this.#send(lease.reply, nak(afterMs));
    // Once it is written down: the next process must not count less.
    if (noted) void noted.then(giveBack);
    else giveBack();
  }

  /** Never rejects: what could not be written is counted by this process alone. */
  #noteTries({ message }: Lease, failures: number): Promise<void> {
    const noted = this.#tries
      .set(message.position, failures)
      .catch((error: unknown) =>
        this.#deps.log.warn(
          { consumer: this.name, error: messageOf(error) },
          "noting a message's failure",
        ),
      )
      .finally(() => this.#pending.delete(noted));
    this.#pending.add(noted);
    return noted;
  }

  #forgetTries({ message, failures }: Lease): void {
    if (failures > 0) this.#tries.remove(message.position).catch(() => {});
  }

  /** Where there is an order, it keeps its place: what follows it is in this process, too. */
  #retryHere(lease: Lease, failures: number, afterMs: number): void {
    lease.state = "waiting";
    const again = { ...lease, attempt: lease.attempt + 1, failures };
    this.#leases.set(lease.message.position, again);
    setTimeout(() => {
      if (this.#isHere(again)) this.#isReady(again);
    }, afterMs).unref();
  }

  #bury(lease: Lease, why: Verdict, { counts = true }: TryOptions = {}): void {
    if (!this.#take(lease)) return;
    const buried = this.#buried(lease, why, counts).finally(() => {
      this.#pending.delete(buried);
      this.#release(lease);
    });
    this.#pending.add(buried);
  }

  async #buried(lease: Lease, why: Verdict, counts: boolean): Promise<void> {
    const { message, firstAt, failures } = lease;
    try {
      await this.#letters.add(message, failures + (counts ? 1 : 0), why);
      this.#send(lease.reply, "+ACK");
      this.#forgetTries(lease);
    } catch (error) {
      this.#deps.log.warn(
        { consumer: this.name, error: messageOf(error) },
        "keeping a dead letter, trying again",
      );
      this.#retrying.set(message.position, { firstAt, failures });
      this.#send(lease.reply, nak(1_000));
    }
  }

  #isHere(lease: Lease): boolean {
    return !this.#isClosed && this.#leases.get(lease.message.position) === lease;
  }

  /** It is no longer this process's; false: it was not, since a replay or a second answer. */
  #take(lease: Lease): boolean {
    if (!this.#isHere(lease)) return false;
    this.#leases.delete(lease.message.position);
    this.#deps.shares.add(this.owner, -lease.bytes);
    this.#deps.freed();
    return true;
  }

  #release({ order }: Lease): void {
    if (order === undefined) return;
    const next = this.#order.leave(order);
    if (next) this.#isReady(next);
  }

  #send(reply: string, text: string): void {
    const { connection } = this.#deps.link;
    if (!connection.isClosed()) connection.publish(reply, text);
  }

  /** The server hands out again what is not confirmed within its time. */
  keepAlive(): void {
    if (++this.#ticks % ticksOfDone === 0) [this.#done, this.#doneBefore] = [new Set(), this.#done];
    for (const { reply } of this.#leases.values()) this.#send(reply, "+WPI");
  }

  /** What the server knows once it has counted the acknowledgements that are on their way: it answers before that. */
  async #settled() {
    await Promise.all(this.#pending);
    let info = await this.#server.info();
    for (let tries = 0; tries < settleTries; tries++) {
      if (info.num_ack_pending <= this.#leases.size + this.#retrying.size) break;
      await new Promise((resolve) => setTimeout(resolve, settlePauseMs));
      info = await this.#server.info();
    }
    return info;
  }

  async state(): Promise<ConsumerState> {
    const info = await this.#settled();
    const leases = [...this.#leases.values()];
    const waiting = info.num_pending + info.num_ack_pending;
    const retrying = this.#retrying.size + leases.filter(({ state }) => state === "waiting").length;
    const inFlight = leases.filter(({ state }) => state === "out").length;
    // Where another process takes, the server knows how many were handed out before, and no more.
    const again = info.num_redelivered;
    return {
      waiting,
      inFlight: this.#takes ? inFlight : info.num_ack_pending - again,
      retrying: this.#takes ? retrying : again,
      dead: await this.#letters.count(),
      dropped: this.#dropped,
      ...(waiting > 0 ? { oldestAt: await this.#server.oldestAt(info) } : {}),
    };
  }

  /** Some of its dead letters have been removed to make room. */
  droppedSome(count: number): void {
    this.#dropped += count;
  }

  /** What is handed out at present is handed out again, if it comes after that place: those answers no longer count. */
  async replay(from: ReplayFrom): Promise<void> {
    await this.#settled();
    await this.#tries.removeAll();
    await this.#server.startAgain(from, this.#options);
  }

  /** The consumer begins again, by this process or another: the server knows nothing of what was handed out before. */
  forgetAll(): void {
    for (const lease of this.#leases.values()) this.#take(lease);
    this.#ready = [];
    this.#early = [];
    this.#expected = 0;
    this.#order.clear();
    this.#retrying.clear();
    this.#recalling.clear();
    this.#done.clear();
    this.#doneBefore.clear();
  }

  async deadLetters(page: { after?: number; limit: number }): Promise<DeadLetter[]> {
    await Promise.all(this.#pending);
    return this.#letters.page(page);
  }
  async deadLetter(id: number): Promise<DeadLetter | undefined> {
    await Promise.all(this.#pending);
    return this.#letters.one(id);
  }
  async redrive(ids: readonly number[] | "all"): Promise<number> {
    await Promise.all(this.#pending);
    return this.#letters.redrive(ids);
  }
  async discard(ids: readonly number[] | "all"): Promise<number> {
    await Promise.all(this.#pending);
    return this.#letters.discard(ids);
  }

  /** What is handed out becomes that of the next process; with `giveBack`, at once. */
  async close(giveBack: boolean): Promise<void> {
    await Promise.all(this.#pending);
    this.#puller.close();
    if (giveBack) for (const { reply } of this.#leases.values()) this.#send(reply, "-NAK");
    this.forgetAll();
    this.#isClosed = true;
    this.#arrived();
  }
}
