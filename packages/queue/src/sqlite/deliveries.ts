import { type Consumers, type StoredConsumer } from "./consumers.ts";
import { type Leases } from "./leases.ts";
import { type MessageRow, type Messages, storedOf } from "./messages.ts";
import { type Pending } from "./pending.ts";
import { type WireDelivery } from "./protocol.ts";
import { pendingState } from "./schema.ts";
import { type Statements } from "./statements.ts";

const { waiting, leased } = pendingState;
/** Messages that one look of a consumer may pass over. */
const maxScanned = 2_000;
/** What is handed out at a time: messages may be large. */
const maxLeased = 64;
const maxLeasedBytes = 2 * 1024 ** 2;

export interface Lease {
  deliveries: WireDelivery[];
  /** The consumer should look again at once. */
  hasMore: boolean;
  /** Its owner has as much as it may have. */
  isStarved?: boolean;
}

/** How messages are handed out. */
export class Deliveries {
  readonly #statements: Statements;
  readonly #messages: Messages;
  readonly #consumers: Consumers;
  readonly #pending: Pending;
  readonly #leases: Leases;

  constructor(
    statements: Statements,
    messages: Messages,
    consumers: Consumers,
    pending: Pending,
    leases: Leases,
  ) {
    this.#statements = statements;
    this.#messages = messages;
    this.#consumers = consumers;
    this.#pending = pending;
    this.#leases = leases;
  }

  /** Hands out up to `atMost` messages: first those whose time has come, then those that the consumer has not looked at. */
  lease(consumer: StoredConsumer, atMost: number, now: number, maxHeld: number): Lease {
    const max = Math.min(atMost, maxLeased);
    const maxBytes = Math.min(maxLeasedBytes, this.#leases.room(consumer));
    if (maxBytes <= 0) return { deliveries: [], hasMore: false, isStarved: true };
    const { deliveries, bytes } = this.#leaseDue(consumer, max, maxBytes, now);
    const scanned = this.#leaseNew(consumer, deliveries, { max, maxBytes, bytes, maxHeld }, now);
    return { deliveries, hasMore: scanned >= maxScanned && deliveries.length < max };
  }

  /** Retries, what was not to be handed out before, and what has been released by an earlier one of its order. */
  #leaseDue(consumer: StoredConsumer, max: number, maxBytes: number, now: number) {
    const due = this.#statements.all(
      `SELECT m.*, p.attempts, p.failures, p.first_at FROM pending p JOIN messages m ON m.position = p.position
       WHERE p.consumer = ? AND p.state = ${waiting} AND p.due <= ? ORDER BY p.due, p.position LIMIT ?`,
      consumer.id,
      now,
      max,
    ) as (MessageRow & { attempts: number; failures: number; first_at: number })[];
    let bytes = 0;
    // The first one always: otherwise one that is larger than what is left would wait for ever.
    const fitting = due.filter(({ body }, at) => (bytes += body.length) <= maxBytes || at === 0);
    const deliveries = fitting.map((row): WireDelivery => {
      const firstAt = row.first_at || now;
      this.#statements.run(
        `UPDATE pending SET state = ${leased}, attempts = attempts + 1, first_at = ? WHERE consumer = ? AND position = ?`,
        firstAt,
        consumer.id,
        row.position,
      );
      this.#leases.handedOut(consumer, row.position, row.body.length);
      const { attempts, failures } = row;
      return { ...storedOf(row), attempt: attempts + 1, failures, firstAt };
    });
    return { deliveries, bytes };
  }

  /** Adds to `deliveries`; returns how many messages the consumer has looked at. */
  #leaseNew(
    consumer: StoredConsumer,
    deliveries: WireDelivery[],
    limits: { max: number; maxBytes: number; bytes: number; maxHeld: number },
    now: number,
  ): number {
    const { max, maxBytes, maxHeld } = limits;
    let { bytes } = limits;
    const before = consumer.cursor;
    let scanned = 0;
    const hasRoom = () => deliveries.length < max && bytes < maxBytes && consumer.held < maxHeld;
    while (hasRoom() && scanned < maxScanned) {
      const wanted = Math.min(max - deliveries.length + 8, 256);
      const rows = this.#messages.after(consumer, wanted);
      for (const row of rows) {
        if (!hasRoom()) break;
        consumer.cursor = row.position;
        const delivery = this.#pending.take(consumer, row, now);
        if (!delivery) continue;
        deliveries.push(delivery);
        bytes += row.body.length;
        this.#leases.handedOut(consumer, row.position, row.body.length);
      }
      scanned += rows.length;
      if (rows.length < wanted) {
        // All of it has been looked at: what is left up to the head does not concern this consumer.
        if (consumer.cursor === (rows.at(-1)?.position ?? consumer.cursor))
          consumer.cursor = this.#messages.head;
        break;
      }
    }
    if (consumer.cursor !== before) this.#consumers.saveCursor(consumer);
    return scanned;
  }
}
