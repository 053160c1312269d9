import { type DatabaseSync } from "node:sqlite";
import { type QueueLimits } from "../queue.ts";
import { Consumers, type StoredConsumer } from "./consumers.ts";
import { DeadLetters } from "./dead-letters.ts";
import { Deliveries } from "./deliveries.ts";
import { Leases } from "./leases.ts";
import { Messages } from "./messages.ts";
import { Pending } from "./pending.ts";
import { Records } from "./records.ts";
import { Retention } from "./retention.ts";
import { prepare } from "./schema.ts";
import { Statements } from "./statements.ts";

/** The tables, and what is done to them; each method of each part is part of the caller's transaction. */
export class Store {
  readonly messages: Messages;
  readonly consumers: Consumers;
  readonly pending: Pending;
  readonly deliveries: Deliveries;
  readonly deadLetters: DeadLetters;
  readonly retention: Retention;
  readonly records: Records;
  readonly #statements: Statements;

  constructor(database: DatabaseSync, { maxLeasedBytes, maxDeadBytes, duplicatesMs }: QueueLimits) {
    prepare(database);
    const statements = new Statements(database);
    const messages = new Messages(statements, duplicatesMs);
    const consumers = new Consumers(statements, messages);
    const leases = new Leases(maxLeasedBytes);
    const pending = new Pending(statements, consumers, leases);
    const dead = new DeadLetters(statements, messages, consumers, pending, maxDeadBytes);
    this.#statements = statements;
    this.messages = messages;
    this.consumers = consumers;
    this.pending = pending;
    this.deliveries = new Deliveries(statements, messages, consumers, pending, leases);
    this.deadLetters = dead;
    this.retention = new Retention(statements, messages, consumers, pending, dead);
    this.records = new Records(statements);
    this.reload();
  }

  /** After a transaction that was rolled back: what is known of consumers is what is stored. */
  reload(): void {
    this.consumers.reload();
    this.pending.reload();
    this.deadLetters.reload();
  }

  /** Of everything that is kept, without free pages. */
  get bytes(): number {
    const [pages, free, size] = ["page_count", "freelist_count", "page_size"].map(
      (name) => (this.#statements.get(`PRAGMA ${name}`) as Record<string, number>)[name] ?? 0,
    ) as [number, number, number];
    return (pages - free) * size;
  }

  /** Without dead letters, which have a limit of their own. */
  get liveBytes(): number {
    return this.bytes - this.deadLetters.bytes;
  }

  /** The machine's clock has been set back, to `now`: what waits goes on to wait for as long as it was to. `byMs` is positive. */
  clockSetBack(byMs: number, now: number): void {
    this.pending.bringForward(byMs, now);
    this.messages.bringForward(byMs, now);
  }

  removeConsumer(consumer: StoredConsumer): void {
    this.pending.removeOf(consumer);
    this.deadLetters.removeOf(consumer);
    this.consumers.remove(consumer.id);
  }

  consumerState(consumer: StoredConsumer) {
    const { count, inFlight, retrying, first } = this.pending.state(consumer);
    const unseen = this.messages.countAfter(consumer);
    const next = this.messages.after(consumer, 1)[0]?.position ?? Number.POSITIVE_INFINITY;
    const oldest = Math.min(first, next);
    return {
      waiting: unseen + count,
      inFlight,
      retrying,
      ...this.deadLetters.state(consumer),
      oldestAt: Number.isFinite(oldest) ? this.messages.acceptedAt(oldest) : undefined,
    };
  }
}
