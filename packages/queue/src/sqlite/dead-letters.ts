import { type Verdict } from "../queue.ts";
import { type Consumers, type StoredConsumer } from "./consumers.ts";
import { type MessageRow, type Messages, rowBytes, storedOf } from "./messages.ts";
import { type Pending } from "./pending.ts";
import { type Statements } from "./statements.ts";

const maxWhyBytes = 4_096;
const bytesOf = `length(body) + length(attributes) + length(key) + length(subject) + length(message) + ${rowBytes}`;
/** More dead letters than have to be are dropped at a time: looking for the largest owner costs something. */
const dropShare = 1 / 16;

interface DeadRow extends MessageRow {
  id: number;
  buried_at: number;
  attempts: number;
  reason: string;
  message: string;
}

/** What consumers have given up: copies, so that they do not keep the log from being cleaned up. */
export class DeadLetters {
  readonly #statements: Statements;
  readonly #messages: Messages;
  readonly #consumers: Consumers;
  readonly #pending: Pending;
  readonly #maxBytes: number;
  /** Those that were removed for want of room, by consumer. */
  readonly #dropped = new Map<number, number>();
  #bytes = 0;

  constructor(
    statements: Statements,
    messages: Messages,
    consumers: Consumers,
    pending: Pending,
    maxBytes: number,
  ) {
    this.#statements = statements;
    this.#messages = messages;
    this.#consumers = consumers;
    this.#pending = pending;
    this.#maxBytes = maxBytes;
  }

  /** Of all consumers. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Measures those of consumers that have just been loaded. */
  reload(): void {
    this.#bytes = 0;
    for (const consumer of this.#consumers.values()) {
      const { bytes } = this.#statements.get(
        `SELECT coalesce(sum(${bytesOf}), 0) AS bytes FROM dead WHERE consumer = ?`,
        consumer.id,
      ) as { bytes: number };
      this.#add(consumer, bytes);
    }
  }

  /** One that is not pending changes nothing. `counts`: the try that has ended so is one of its failures. */
  bury(
    consumer: StoredConsumer,
    position: number,
    why: Verdict,
    now: number,
    counts: boolean,
  ): void {
    const buried = this.#statements.get(
      `INSERT INTO dead (consumer, buried_at, attempts, reason, message, position, at, subject, key, attributes, body)
       SELECT p.consumer, ?, p.failures + ?, ?, ?, m.position, m.at, m.subject, m.key, m.attributes, m.body
       FROM pending p JOIN messages m ON m.position = p.position WHERE p.consumer = ? AND p.position = ?
       RETURNING ${bytesOf} AS bytes`,
      now,
      counts ? 1 : 0,
      why.reason.slice(0, 100),
      why.message.slice(0, maxWhyBytes),
      consumer.id,
      position,
    ) as { bytes: number } | undefined;
    this.#pending.ack(consumer, position);
    this.#add(consumer, buried?.bytes ?? 0);
    if (this.#bytes > this.#maxBytes) this.#drop();
  }

  /** `bytes` may be negative. */
  #add(consumer: StoredConsumer, bytes: number): void {
    consumer.deadBytes += bytes;
    this.#bytes += bytes;
  }

  /** The oldest of the owner who has the most. */
  #drop(): void {
    while (this.#bytes > this.#maxBytes * (1 - dropShare)) {
      const [largest] = this.#consumers.largestFirst(({ deadBytes }) => deadBytes);
      const consumer = largest?.consumers[0];
      const oldest =
        consumer &&
        (this.#statements.get(
          `DELETE FROM dead WHERE id = (SELECT min(id) FROM dead WHERE consumer = ?) RETURNING ${bytesOf} AS bytes`,
          consumer.id,
        ) as { bytes: number } | undefined);
      if (!oldest) return;
      this.#add(consumer, -oldest.bytes);
      this.#dropped.set(consumer.id, (this.#dropped.get(consumer.id) ?? 0) + 1);
    }
  }

  state({ id }: StoredConsumer): { dead: number; dropped: number } {
    const { n: dead } = this.#statements.get(
      "SELECT count(*) AS n FROM dead WHERE consumer = ?",
      id,
    ) as { n: number };
    return { dead, dropped: this.#dropped.get(id) ?? 0 };
  }

  list({ id }: StoredConsumer, after: number, limit: number) {
    return this.#statements
      .page(
        "SELECT * FROM dead WHERE consumer = ? AND id > ? ORDER BY id LIMIT ?",
        [id, after, limit],
        ({ body }) => (body as Uint8Array).length,
      )
      .map((each) => {
        const row = each as unknown as DeadRow;
        const { id: number, buried_at: buriedAt, attempts, reason, message } = row;
        const event = storedOf({ ...row, not_before: null });
        return { id: number, buriedAt, attempts, reason, message, event };
      });
  }

  /** They become messages of this consumer again, with no attempts; returns how many there were. */
  redrive(consumer: StoredConsumer, ids: readonly number[] | "all", now: number): number {
    return this.#removeEach(consumer, ids, (row) => {
      const position = this.#messages.appendPrivate(row, now);
      this.#pending.add(consumer, position, row.attributes);
    });
  }

  discard(consumer: StoredConsumer, ids: readonly number[] | "all"): number {
    return this.#removeEach(consumer, ids, () => {});
  }

  #removeEach(
    consumer: StoredConsumer,
    ids: readonly number[] | "all",
    handle: (row: MessageRow) => void,
  ): number {
    const remove = (id: number) => {
      const row = this.#statements.get(
        `DELETE FROM dead WHERE consumer = ? AND id = ? RETURNING *, ${bytesOf} AS bytes`,
        consumer.id,
        id,
      ) as (DeadRow & { bytes: number }) | undefined;
      if (!row) return 0;
      this.#add(consumer, -row.bytes);
      handle(row);
      return 1;
    };
    if (ids !== "all") return ids.reduce((sum, id) => sum + remove(id), 0);
    const all = this.#statements.all(
      "SELECT id FROM dead WHERE consumer = ? ORDER BY id",
      consumer.id,
    );
    return all.reduce<number>((sum, row) => sum + remove((row as { id: number }).id), 0);
  }

  /** Of a consumer that is being removed. */
  removeOf({ id, deadBytes }: StoredConsumer): void {
    this.#bytes -= deadBytes;
    this.#dropped.delete(id);
    this.#statements.run("DELETE FROM dead WHERE consumer = ?", id);
  }
}
