import { type Verdict } from "../queue.ts";
import { type Consumers, type StoredConsumer } from "./consumers.ts";
import { type DeadLetters } from "./dead-letters.ts";
import { type Messages, rowBytes } from "./messages.ts";
import { type Pending } from "./pending.ts";
import { type Statements } from "./statements.ts";

/** Which messages are kept, and at whose expense they are removed; each method does a limited part of it. */
export class Retention {
  readonly #statements: Statements;
  readonly #messages: Messages;
  readonly #consumers: Consumers;
  readonly #pending: Pending;
  readonly #deadLetters: DeadLetters;

  constructor(
    statements: Statements,
    messages: Messages,
    consumers: Consumers,
    pending: Pending,
    deadLetters: DeadLetters,
  ) {
    this.#statements = statements;
    this.#messages = messages;
    this.#consumers = consumers;
    this.#pending = pending;
    this.#deadLetters = deadLetters;
  }

  /** What a consumer has not handled in time becomes its dead letters, at most `limit`; nothing behind the position `last`. */
  expire(
    consumer: StoredConsumer,
    { last, before, limit }: { last: number; before: number; limit: number },
    now: number,
    whyOf: (failures: number) => Verdict,
  ): number {
    const late = this.#pending.late(consumer, last, before, limit);
    for (const { position, failures } of late)
      this.#deadLetters.bury(consumer, position, whyOf(failures), now, false);
    let count = late.length;
    while (count < limit) {
      const [row] = this.#messages.after(consumer, 1);
      if (!row || row.position > last || row.at >= before) break;
      consumer.cursor = row.position;
      count++;
      // A dead letter is made of what is pending. One that is not to be handed out yet is not late; it is pending from here on.
      if (this.#pending.take(consumer, row, now))
        this.#deadLetters.bury(consumer, row.position, whyOf(0), now, false);
    }
    if (count > late.length) this.#consumers.saveCursor(consumer);
    return count;
  }

  /**
   * Notes what a consumer that has fallen behind has yet to get, so that what is between can be removed; returns how many
   * messages it has looked at.
   */
  look(consumer: StoredConsumer, limit: number, now: number): number {
    const before = consumer.cursor;
    let scanned = 0;
    while (scanned < limit && consumer.cursor < this.#messages.head) {
      const rows = this.#messages.after(consumer, 64);
      for (const row of rows) {
        consumer.cursor = row.position;
        this.#pending.take(consumer, row, now, false);
      }
      scanned += rows.length;
      if (rows.length < 64) consumer.cursor = this.#messages.head;
    }
    if (consumer.cursor !== before) this.#consumers.saveCursor(consumer);
    return scanned;
  }

  /**
   * Cursors move over what does not concern their consumers, so that it can be removed; returns up to where all of them
   * have come.
   */
  advanceCursors(): number {
    const { head } = this.#messages;
    let least = head;
    for (const consumer of this.#consumers.values()) {
      if (consumer.cursor < head) {
        const before = consumer.cursor;
        const next = this.#messages.after(consumer, 1)[0]?.position;
        consumer.cursor = next === undefined ? head : next - 1;
        if (consumer.cursor !== before) this.#consumers.saveCursor(consumer);
      }
      least = Math.min(least, consumer.cursor);
    }
    return least;
  }

  /** Removes up to `limit` messages that every consumer has done with, oldest first; returns how many there were. */
  removeDone(upTo: number, before: number, limit: number): number {
    const { changes } = this.#statements.run(
      `DELETE FROM messages WHERE position IN (SELECT position FROM messages m WHERE position <= ? AND +at < ?
       AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.position = m.position) ORDER BY position LIMIT ?)`,
      upTo,
      before,
      limit,
    );
    return Number(changes);
  }

  /**
   * Makes room at the expense of the owner who keeps the most from being removed: some of its messages, oldest first,
   * become dead letters. One who is alone loses nothing: then it is its own publishers who wait.
   */
  shed(excess: number, limit: number, now: number, why: Verdict): number {
    const sizes = this.#sizes();
    if (sizes.count === 0) return 0;
    const average = sizes.total / sizes.count;
    const backlogs = this.#backlogs(sizes, average);
    const owners = this.#consumers.largestFirst(({ id }) => backlogs.get(id) ?? 0);
    const [largest] = owners;
    const consumer = largest?.consumers[0];
    if (!consumer || owners.length < 2 || largest.bytes <= sizes.total / owners.length) return 0;
    const wanted = Math.min(limit, Math.ceil(excess / average));
    const oldest = { last: this.#messages.head, before: Number.MAX_SAFE_INTEGER, limit: wanted };
    return this.expire(consumer, oldest, now, () => why);
  }

  /** Of what is in the log, in one pass over it. */
  #sizes() {
    const bySubject = new Map<number, number>();
    let total = 0;
    let count = 0;
    const rows = this.#statements.all(
      `SELECT subject_hash AS subject, sum(length(body) + ${rowBytes}) AS bytes, count(*) AS n FROM messages GROUP BY subject_hash`,
    ) as { subject: number; bytes: number; n: number }[];
    for (const { subject, bytes, n } of rows) {
      bySubject.set(subject, bytes);
      total += bytes;
      count += n;
    }
    return { bySubject, total, count };
  }

  /** Bytes by consumer, estimated: as if the messages of a subject were spread evenly over the log, and all of one size. */
  #backlogs(
    { bySubject, total }: { bySubject: ReadonlyMap<number, number>; total: number },
    average: number,
  ): Map<number, number> {
    const { head } = this.#messages;
    const { first } = this.#statements.get("SELECT min(position) AS first FROM messages") as {
      first: number;
    };
    const pending = new Map(
      (
        this.#statements.all("SELECT consumer, count(*) AS n FROM pending GROUP BY consumer") as {
          consumer: number;
          n: number;
        }[]
      ).map(({ consumer, n }) => [consumer, n]),
    );
    const backlogs = new Map<number, number>();
    for (const { id, subjects, hashes, cursor } of this.#consumers.values()) {
      const ahead = Math.max(0, head - Math.max(cursor, first - 1)) / (head - first + 1);
      const all =
        subjects === "all"
          ? total
          : hashes.reduce((sum, each) => sum + (bySubject.get(each) ?? 0), 0);
      backlogs.set(id, all * ahead + (pending.get(id) ?? 0) * average);
    }
    return backlogs;
  }
}
