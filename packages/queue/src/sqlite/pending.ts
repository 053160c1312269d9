import { attributeOf, matches } from "../filter.ts";
import { type Consumers, type StoredConsumer } from "./consumers.ts";
import { type Leases } from "./leases.ts";
import { type MessageRow, storedOf } from "./messages.ts";
import { type WireDelivery } from "./protocol.ts";
import { pendingState } from "./schema.ts";
import { type Statements } from "./statements.ts";

const { waiting, leased, held } = pendingState;

export interface LateRow {
  position: number;
  failures: number;
}

/** What consumers have looked at, and neither acknowledged nor buried: one row for each consumer and message. */
export class Pending {
  readonly #statements: Statements;
  readonly #consumers: Consumers;
  readonly #leases: Leases;

  constructor(statements: Statements, consumers: Consumers, leases: Leases) {
    this.#statements = statements;
    this.#consumers = consumers;
    this.#leases = leases;
  }

  /** Counts what is held and what is handed out, for consumers that have just been loaded. */
  reload(): void {
    this.#leases.clear();
    for (const consumer of this.#consumers.values()) {
      const { n } = this.#statements.get(
        "SELECT count(*) AS n FROM pending WHERE consumer = ? AND state = ?",
        consumer.id,
        held,
      ) as { n: number };
      consumer.held = n;
      const out = this.#statements.all(
        `SELECT p.position, length(m.body) AS bytes FROM pending p JOIN messages m ON m.position = p.position
         WHERE p.consumer = ? AND p.state = ${leased}`,
        consumer.id,
      ) as { position: number; bytes: number }[];
      for (const { position, bytes } of out) this.#leases.handedOut(consumer, position, bytes);
    }
  }

  /** The consumer looks at one message for the first time; what is returned is to be handed out. */
  take(
    consumer: StoredConsumer,
    row: MessageRow,
    now: number,
    mayLease = true,
  ): WireDelivery | undefined {
    const { subjects, filter, orderBy } = consumer;
    if (subjects !== "all" && !subjects.has(row.subject)) return undefined;
    let order: string | null = null;
    if (filter !== undefined || orderBy !== undefined) {
      const attributes = JSON.parse(row.attributes) as Record<string, string>;
      if (!matches(filter, attributes)) return undefined;
      order = orderBy === undefined ? null : (attributeOf(attributes, orderBy) ?? null);
    }
    const isHeld =
      order !== null &&
      this.#statements.get(
        "SELECT 1 FROM pending WHERE consumer = ? AND order_key = ? LIMIT 1",
        consumer.id,
        order,
      ) !== undefined;
    const isEarly = row.not_before !== null && row.not_before > now;
    const state = isHeld ? held : isEarly || !mayLease ? waiting : leased;
    if (isHeld) consumer.held++;
    const isLeased = state === leased;
    // A replay may come across one that is pending already.
    const { changes } = this.#statements.run(
      `INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT DO NOTHING`,
      consumer.id,
      row.position,
      state,
      row.not_before ?? 0,
      isLeased ? 1 : 0,
      isLeased ? now : 0,
      order,
    );
    if (!changes && isHeld) consumer.held--;
    return isLeased && changes
      ? { ...storedOf(row), attempt: 1, failures: 0, firstAt: now }
      : undefined;
  }

  /** A message of this consumer alone, which no cursor comes across. */
  add({ id, orderBy }: StoredConsumer, position: number, attributes: string): void {
    const known = JSON.parse(attributes) as Record<string, string>;
    const order = orderBy ? (attributeOf(known, orderBy) ?? null) : null;
    this.#statements.run(
      "INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
      id,
      position,
      waiting,
      0,
      0,
      0,
      order,
    );
  }

  /** One that is not pending changes nothing. */
  ack(consumer: StoredConsumer, position: number): void {
    this.#leases.cameBack(consumer, position);
    const row = this.#statements.get(
      "DELETE FROM pending WHERE consumer = ? AND position = ? RETURNING order_key",
      consumer.id,
      position,
    ) as { order_key: string | null } | undefined;
    if (row?.order_key) this.#release(consumer, row.order_key);
  }

  retry(consumer: StoredConsumer, position: number, due: number, counts: boolean): void {
    this.#leases.cameBack(consumer, position);
    this.#statements.run(
      `UPDATE pending SET state = ${waiting}, due = ?, failures = failures + ? WHERE consumer = ? AND position = ? AND state = ${leased}`,
      due,
      counts ? 1 : 0,
      consumer.id,
      position,
    );
  }

  /** The next one of this order need not wait any longer. */
  #release(consumer: StoredConsumer, order: string): void {
    const first = this.#statements.get(
      "SELECT position, state FROM pending WHERE consumer = ? AND order_key = ? ORDER BY position LIMIT 1",
      consumer.id,
      order,
    ) as { position: number; state: number } | undefined;
    if (first?.state !== held) return;
    consumer.held--;
    this.#statements.run(
      `UPDATE pending SET state = ${waiting} WHERE consumer = ? AND position = ?`,
      consumer.id,
      first.position,
    );
  }

  /** When a message of this consumer is due next. */
  nextDue({ id }: StoredConsumer): number | undefined {
    const row = this.#statements.get(
      `SELECT min(due) AS due FROM pending WHERE consumer = ? AND state = ${waiting}`,
      id,
    ) as { due: number | null };
    return row.due ?? undefined;
  }

  /** What is due after `now` is due earlier, by so many milliseconds. */
  bringForward(ms: number, now: number): void {
    this.#statements.run(
      `UPDATE pending SET due = due - ? WHERE state <> ${leased} AND due > ?`,
      ms,
      now,
    );
  }

  /** Up to `limit` messages, none beyond `last`, that could have been handed out before that time, and are not at present. */
  late({ id }: StoredConsumer, last: number, before: number, limit: number): LateRow[] {
    return this.#statements.all(
      `SELECT p.position, p.failures FROM pending p CROSS JOIN messages m ON m.position = p.position
       WHERE p.consumer = ? AND p.position <= ? AND p.state <> ${leased} AND max(+m.at, coalesce(m.not_before, 0)) < ? LIMIT ?`,
      id,
      last,
      before,
      limit,
    ) as unknown as LateRow[];
  }

  /** How many there are, and the first position of them: infinite without any. */
  state({ id }: StoredConsumer) {
    const rows = this.#statements.all(
      "SELECT state, count(*) AS n, min(position) AS first FROM pending WHERE consumer = ? GROUP BY state",
      id,
    ) as { state: number; n: number; first: number }[];
    const of = (state: number) => rows.find((row) => row.state === state)?.n ?? 0;
    const { n: retrying } = this.#statements.get(
      `SELECT count(*) AS n FROM pending WHERE consumer = ? AND state = ${waiting} AND attempts > 0`,
      id,
    ) as { n: number };
    return {
      count: of(waiting) + of(leased) + of(held),
      inFlight: of(leased),
      retrying,
      first: Math.min(...rows.map((row) => row.first)),
    };
  }

  /** Of a consumer that is being removed. */
  removeOf(consumer: StoredConsumer): void {
    for (const position of consumer.leased.keys()) this.#leases.cameBack(consumer, position);
    this.#statements.run("DELETE FROM pending WHERE consumer = ?", consumer.id);
  }
}
