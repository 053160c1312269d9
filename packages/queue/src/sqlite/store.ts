import { hash } from "node:crypto";
import { type DatabaseSync, type StatementSync } from "node:sqlite";
import { attributeOf, type Filter, matches } from "../filter.ts";
import { maxPageBytes, type QueueLimits, type Verdict } from "../queue.ts";
import {
  type WireDelivery,
  type WireMessage,
  type WireOptions,
  type WireRecord,
  type WireStored,
} from "./protocol.ts";
import { pendingState, prepare, privateHash } from "./schema.ts";
import { Shares } from "./shares.ts";

const { waiting, leased, held } = pendingState;
/** Messages that one look of a consumer may pass over. */
const maxScanned = 2_000;
const maxWhyBytes = 4_096;
/** What is handed out at a time: messages may be large. */
const maxLeased = 64;
const maxLeasedBytes = 2 * 1024 ** 2;
/** More waiting messages are not counted. */
const maxCounted = 1_000_000;
/** What a message takes besides its body, about. */
const rowBytes = 1_024;
const deadBytesOf = `length(body) + length(attributes) + length(key) + length(subject) + length(message) + ${rowBytes}`;
/** More dead letters than have to be are dropped at a time: looking for the largest owner costs something. */
const dropShare = 1 / 16;

export interface StoredConsumer {
  id: number;
  name: string;
  /** Its options, as they are stored. */
  text: string;
  subjects: ReadonlySet<string> | "all";
  hashes: readonly number[];
  filter: Filter | undefined;
  orderBy: string | undefined;
  cursor: number;
  /** Rows in state `held`. */
  held: number;
  owner: string;
  /** Messages up to here were there before it. */
  since: number;
  /** Of its dead letters. */
  deadBytes: number;
  /** Bytes of what is handed out, by position. */
  leased: Map<number, number>;
}

interface Row {
  position: number;
  at: number;
  not_before: number | null;
  subject: string;
  key: string;
  attributes: string;
  body: Uint8Array;
}

/** Of 48 bits, never 0: an index of numbers is half the size of one of texts, and what it finds is compared. */
export const hashOf = (text: string): number => hash("sha1", text, "buffer").readUIntBE(0, 6) || 1;

/** The tables, and what is done to them; each method is part of the caller's transaction. */
export class Store {
  readonly database: DatabaseSync;
  readonly consumers = new Map<number, StoredConsumer>();
  readonly #statements = new Map<string, StatementSync>();
  readonly #limits: QueueLimits;
  readonly #leased: Shares;
  /** Dead letters that were removed for want of room, by consumer. */
  readonly #dropped = new Map<number, number>();
  #deadBytes = 0;

  constructor(database: DatabaseSync, limits: QueueLimits) {
    this.database = database;
    this.#limits = limits;
    this.#leased = new Shares(limits.maxLeasedBytes);
    prepare(database);
    this.reload();
  }

  /** After a transaction that was rolled back: what is known of consumers is what is stored. */
  reload(): void {
    this.consumers.clear();
    this.#leased.clear();
    this.#deadBytes = 0;
    for (const row of this.#all("SELECT id, name, cursor, options FROM consumers")) {
      const { id, name, cursor, options } = row as Record<"id" | "cursor", number> &
        Record<"name" | "options", string>;
      const { n } = this.#get(
        "SELECT count(*) AS n FROM pending WHERE consumer = ? AND state = ?",
        id,
        held,
      ) as { n: number };
      const { bytes: deadBytes } = this.#get(
        `SELECT coalesce(sum(${deadBytesOf}), 0) AS bytes FROM dead WHERE consumer = ?`,
        id,
      ) as { bytes: number };
      this.#deadBytes += deadBytes;
      const known = consumerOf(id, name, options);
      const consumer = { ...known, cursor, held: n, deadBytes, leased: new Map<number, number>() };
      this.consumers.set(id, consumer);
      const out = this.#all(
        `SELECT p.position, length(m.body) AS bytes FROM pending p JOIN messages m ON m.position = p.position
         WHERE p.consumer = ? AND p.state = ${leased}`,
        id,
      ) as { position: number; bytes: number }[];
      for (const { position, bytes } of out) this.#handedOut(consumer, position, bytes);
    }
  }

  get head(): number {
    const row = this.#get("SELECT seq FROM sqlite_sequence WHERE name = 'messages'");
    return (row as { seq: number } | undefined)?.seq ?? 0;
  }

  /** Of everything that is kept, without free pages. */
  get bytes(): number {
    const [pages, free, size] = ["page_count", "freelist_count", "page_size"].map(
      (name) => (this.#get(`PRAGMA ${name}`) as Record<string, number>)[name] ?? 0,
    ) as [number, number, number];
    return (pages - free) * size;
  }

  /** Without dead letters, which have a limit of their own. */
  get liveBytes(): number {
    return this.bytes - this.#deadBytes;
  }

  #handedOut(consumer: StoredConsumer, position: number, bodyBytes: number): void {
    const bytes = bodyBytes + rowBytes;
    consumer.leased.set(position, bytes);
    this.#leased.add(consumer.owner, bytes);
  }

  #cameBack(consumer: StoredConsumer, position: number): void {
    const bytes = consumer.leased.get(position);
    if (bytes === undefined) return;
    consumer.leased.delete(position);
    this.#leased.add(consumer.owner, -bytes);
  }

  append(
    message: WireMessage,
    now: number,
    since: number,
  ): { position: number; isDuplicate: boolean } {
    const keyHash = hashOf(message.key);
    const same = this.#all(
      "SELECT position, key, at FROM messages WHERE key_hash = ?",
      keyHash,
    ) as { position: number; key: string; at: number }[];
    const known = same.find(({ key, at }) => key === message.key && at > since);
    if (known) return { position: known.position, isDuplicate: true };
    const { subject, key, attributes, body, notBefore } = message;
    const subjectHash = hashOf(subject);
    const position = this.#insert(now, notBefore ?? null, subjectHash, keyHash, {
      subject,
      key,
      attributes,
      body,
    });
    return { position, isDuplicate: false };
  }

  #insert(
    at: number,
    notBefore: number | null,
    subjectHash: number,
    keyHash: number,
    { subject, key, attributes, body }: Pick<Row, "subject" | "key" | "attributes" | "body">,
  ): number {
    const { lastInsertRowid } = this.#prepare(
      "INSERT INTO messages (at, not_before, subject_hash, key_hash, subject, key, attributes, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    ).run(at, notBefore, subjectHash, keyHash, subject, key, attributes, body);
    return Number(lastInsertRowid);
  }

  putConsumer(name: string, options: WireOptions): StoredConsumer {
    const known = [...this.consumers.values()].find((consumer) => consumer.name === name);
    const since = known?.since ?? (options.from === "start" ? 0 : this.head);
    const text = JSON.stringify({ ...options, since });
    if (known) {
      const isSame = known.text === text;
      if (isSame) return known;
      this.#run("UPDATE consumers SET options = ? WHERE id = ?", text, known.id);
      const { owner } = known;
      const changed = { ...known, ...consumerOf(known.id, name, text), owner };
      this.consumers.set(known.id, changed);
      return changed;
    }
    const cursor = since;
    const { lastInsertRowid } = this.#prepare(
      "INSERT INTO consumers (name, cursor, options) VALUES (?, ?, ?)",
    ).run(name, cursor, text);
    const id = Number(lastInsertRowid);
    const created: StoredConsumer = {
      ...consumerOf(id, name, text),
      cursor,
      held: 0,
      deadBytes: 0,
      leased: new Map(),
    };
    this.consumers.set(id, created);
    return created;
  }

  removeConsumer(id: number): void {
    const known = this.consumers.get(id);
    if (known) for (const position of known.leased.keys()) this.#cameBack(known, position);
    this.#deadBytes -= known?.deadBytes ?? 0;
    this.#dropped.delete(id);
    for (const table of ["pending", "dead"])
      this.#run(`DELETE FROM ${table} WHERE consumer = ?`, id);
    this.#run("DELETE FROM consumers WHERE id = ?", id);
    this.consumers.delete(id);
  }

  /**
   * Hands out up to `max` messages: first those whose time has come, then those that the consumer has not looked at.
   * `hasMore` says that it should look again at once, `isStarved` that its owner has as much as it may have.
   */
  lease(
    consumer: StoredConsumer,
    wish: number,
    now: number,
    maxHeld: number,
  ): { deliveries: WireDelivery[]; hasMore: boolean; isStarved?: boolean } {
    const max = Math.min(wish, maxLeased);
    const maxBytes = Math.min(maxLeasedBytes, this.#leased.room(consumer.owner));
    if (maxBytes <= 0) return { deliveries: [], hasMore: false, isStarved: true };
    const due = this.#all(
      `SELECT m.*, p.attempts, p.first_at FROM pending p JOIN messages m ON m.position = p.position
       WHERE p.consumer = ? AND p.state = ${waiting} AND p.due <= ? ORDER BY p.due, p.position LIMIT ?`,
      consumer.id,
      now,
      max,
    ) as (Row & { attempts: number; first_at: number })[];
    let bytes = 0;
    const fitting = due.filter(({ body }, at) => (bytes += body.length) <= maxBytes || at === 0);
    const deliveries = fitting.map((row) => {
      const firstAt = row.first_at || now;
      this.#run(
        `UPDATE pending SET state = ${leased}, attempts = attempts + 1, first_at = ? WHERE consumer = ? AND position = ?`,
        firstAt,
        consumer.id,
        row.position,
      );
      this.#handedOut(consumer, row.position, row.body.length);
      return { ...stored(row), attempt: row.attempts + 1, firstAt };
    });
    const before = consumer.cursor;
    let scanned = 0;
    const hasRoom = () => deliveries.length < max && bytes < maxBytes && consumer.held < maxHeld;
    while (hasRoom() && scanned < maxScanned) {
      const wanted = Math.min(max - deliveries.length + 8, 256);
      const rows = this.#after(consumer, wanted);
      for (const row of rows) {
        if (!hasRoom()) break;
        consumer.cursor = row.position;
        const delivery = this.#take(consumer, row, now);
        if (!delivery) continue;
        deliveries.push(delivery);
        bytes += row.body.length;
        this.#handedOut(consumer, row.position, row.body.length);
      }
      scanned += rows.length;
      if (rows.length < wanted) {
        if (consumer.cursor === (rows.at(-1)?.position ?? consumer.cursor))
          consumer.cursor = this.head;
        break;
      }
    }
    if (consumer.cursor !== before) this.#saveCursor(consumer);
    return { deliveries, hasMore: scanned >= maxScanned && deliveries.length < max };
  }

  /** The consumer looks at one message for the first time. */
  #take(
    consumer: StoredConsumer,
    row: Row,
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
      this.#get(
        "SELECT 1 FROM pending WHERE consumer = ? AND order_key = ? LIMIT 1",
        consumer.id,
        order,
      ) !== undefined;
    const isEarly = row.not_before !== null && row.not_before > now;
    const state = isHeld ? held : isEarly || !mayLease ? waiting : leased;
    if (isHeld) consumer.held++;
    const isLeased = state === leased;
    // A replay may come across one that is pending already.
    const { changes } = this.#prepare(
      "INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    ).run(
      consumer.id,
      row.position,
      state,
      row.not_before ?? 0,
      isLeased ? 1 : 0,
      isLeased ? now : 0,
      order,
    );
    if (!changes && isHeld) consumer.held--;
    return isLeased && changes ? { ...stored(row), attempt: 1, firstAt: now } : undefined;
  }

  /** The next messages by subject, with those that only have the same hash. */
  #after({ subjects, hashes, cursor }: StoredConsumer, limit: number): Row[] {
    if (subjects === "all")
      return this.#all(
        `SELECT * FROM messages WHERE position > ? AND subject_hash <> ${privateHash} ORDER BY position LIMIT ?`,
        cursor,
        limit,
      ) as unknown as Row[];
    const query =
      "SELECT * FROM messages WHERE subject_hash = ? AND position > ? ORDER BY position LIMIT ?";
    const [only, ...others] = hashes;
    if (only === undefined) return [];
    if (others.length === 0) return this.#all(query, only, cursor, limit) as unknown as Row[];
    const positions = hashes.flatMap((each) =>
      this.#all(query.replace("*", "position"), each, cursor, limit).map(
        (row) => (row as { position: number }).position,
      ),
    );
    return positions
      .sort((a, b) => a - b)
      .slice(0, limit)
      .map((position) => this.#get("SELECT * FROM messages WHERE position = ?", position) as Row);
  }

  /**
   * Notes what a consumer that has fallen behind has yet to get, so that what is between can be removed; returns how many
   * messages it has looked at.
   */
  look(consumer: StoredConsumer, limit: number, now: number): number {
    const before = consumer.cursor;
    let scanned = 0;
    while (scanned < limit && consumer.cursor < this.head) {
      const rows = this.#after(consumer, 64);
      for (const row of rows) {
        consumer.cursor = row.position;
        this.#take(consumer, row, now, false);
      }
      scanned += rows.length;
      if (rows.length < 64) consumer.cursor = this.head;
    }
    if (consumer.cursor !== before) this.#saveCursor(consumer);
    return scanned;
  }

  /** Persisted lazily: what is looked at twice is not handed out twice, because it is pending. */
  #saveCursor({ id, cursor }: StoredConsumer): void {
    this.#run("UPDATE consumers SET cursor = ? WHERE id = ?", cursor, id);
  }

  /** Whether it is there, and handed out. */
  ack(consumer: StoredConsumer, position: number): void {
    this.#cameBack(consumer, position);
    const row = this.#get(
      "DELETE FROM pending WHERE consumer = ? AND position = ? RETURNING order_key",
      consumer.id,
      position,
    ) as { order_key: string | null } | undefined;
    if (row?.order_key) this.#release(consumer, row.order_key);
  }

  retry(consumer: StoredConsumer, position: number, due: number): void {
    const { id } = consumer;
    this.#cameBack(consumer, position);
    this.#run(
      `UPDATE pending SET state = ${waiting}, due = ? WHERE consumer = ? AND position = ? AND state = ${leased}`,
      due,
      id,
      position,
    );
  }

  bury(consumer: StoredConsumer, position: number, why: Verdict, now: number): void {
    const buried = this.#get(
      `INSERT INTO dead (consumer, buried_at, attempts, reason, message, position, at, subject, key, attributes, body)
       SELECT p.consumer, ?, p.attempts, ?, ?, m.position, m.at, m.subject, m.key, m.attributes, m.body
       FROM pending p JOIN messages m ON m.position = p.position WHERE p.consumer = ? AND p.position = ?
       RETURNING ${deadBytesOf} AS bytes`,
      now,
      why.reason.slice(0, 100),
      why.message.slice(0, maxWhyBytes),
      consumer.id,
      position,
    ) as { bytes: number } | undefined;
    this.ack(consumer, position);
    this.#countDead(consumer, buried?.bytes ?? 0);
    if (this.#deadBytes > this.#limits.maxDeadBytes) this.#dropDead();
  }

  #countDead(consumer: StoredConsumer, bytes: number): void {
    consumer.deadBytes += bytes;
    this.#deadBytes += bytes;
  }

  /** The oldest dead letters of the owner who has the most. */
  #dropDead(): void {
    const { maxDeadBytes } = this.#limits;
    while (this.#deadBytes > maxDeadBytes * (1 - dropShare)) {
      const bytesOf = (consumer: StoredConsumer) => consumer.deadBytes;
      const [largest] = this.#largestFirst(bytesOf);
      const consumer = largest?.consumers[0];
      const oldest =
        consumer &&
        (this.#get(
          `DELETE FROM dead WHERE id = (SELECT min(id) FROM dead WHERE consumer = ?) RETURNING ${deadBytesOf} AS bytes`,
          consumer.id,
        ) as { bytes: number } | undefined);
      if (!oldest) return;
      this.#countDead(consumer, -oldest.bytes);
      this.#dropped.set(consumer.id, (this.#dropped.get(consumer.id) ?? 0) + 1);
    }
  }

  /** Owners and their consumers, those with the most first. */
  #largestFirst(bytesOf: (consumer: StoredConsumer) => number) {
    const owners = new Map<string, { bytes: number; consumers: StoredConsumer[] }>();
    for (const consumer of this.consumers.values()) {
      const known = owners.get(consumer.owner) ?? { bytes: 0, consumers: [] };
      known.bytes += bytesOf(consumer);
      known.consumers.push(consumer);
      owners.set(consumer.owner, known);
    }
    for (const { consumers } of owners.values()) consumers.sort((a, b) => bytesOf(b) - bytesOf(a));
    return [...owners.values()].sort((a, b) => b.bytes - a.bytes);
  }

  /**
   * Makes room at the expense of who keeps the most from being removed: some of its messages, oldest first, become dead letters.
   * One who is alone loses nothing: then it is its own publishers who wait. Backlogs are estimated, as one pass over the
   * messages can tell them.
   */
  shed(excess: number, limit: number, now: number, why: Verdict): number {
    const bySubject = new Map<number, number>();
    let total = 0;
    let count = 0;
    const rows = this.#all(
      `SELECT subject_hash AS subject, sum(length(body) + ${rowBytes}) AS bytes, count(*) AS n FROM messages GROUP BY subject_hash`,
    ) as { subject: number; bytes: number; n: number }[];
    for (const { subject, bytes, n } of rows) {
      bySubject.set(subject, bytes);
      total += bytes;
      count += n;
    }
    if (count === 0) return 0;
    const average = total / count;
    const { head } = this;
    const { first } = this.#get("SELECT min(position) AS first FROM messages") as { first: number };
    const pending = new Map(
      (
        this.#all("SELECT consumer, count(*) AS n FROM pending GROUP BY consumer") as {
          consumer: number;
          n: number;
        }[]
      ).map(({ consumer, n }) => [consumer, n]),
    );
    const backlogs = new Map<number, number>();
    for (const { id, subjects, hashes, cursor } of this.consumers.values()) {
      const ahead = Math.max(0, head - Math.max(cursor, first - 1)) / (head - first + 1);
      const all =
        subjects === "all"
          ? total
          : hashes.reduce((sum, each) => sum + (bySubject.get(each) ?? 0), 0);
      backlogs.set(id, all * ahead + (pending.get(id) ?? 0) * average);
    }
    const owners = this.#largestFirst(({ id }) => backlogs.get(id) ?? 0);
    const [largest] = owners;
    const consumer = largest?.consumers[0];
    if (!consumer || owners.length < 2 || largest.bytes <= total / owners.length) return 0;
    const wanted = Math.min(limit, Math.ceil(excess / average));
    return this.expire(consumer, Number.MAX_SAFE_INTEGER, wanted, now, why);
  }

  #release(consumer: StoredConsumer, order: string): void {
    const first = this.#get(
      "SELECT position, state FROM pending WHERE consumer = ? AND order_key = ? ORDER BY position LIMIT 1",
      consumer.id,
      order,
    ) as { position: number; state: number } | undefined;
    if (first?.state !== held) return;
    consumer.held--;
    this.#run(
      `UPDATE pending SET state = ${waiting} WHERE consumer = ? AND position = ?`,
      consumer.id,
      first.position,
    );
  }

  /** When a message of this consumer is due next. */
  nextDue({ id }: StoredConsumer): number | undefined {
    const row = this.#get(
      `SELECT min(due) AS due FROM pending WHERE consumer = ? AND state = ${waiting}`,
      id,
    ) as { due: number | null };
    return row.due ?? undefined;
  }

  consumerState(consumer: StoredConsumer) {
    const { id, cursor } = consumer;
    const rows = this.#all(
      "SELECT state, count(*) AS n, min(position) AS first FROM pending WHERE consumer = ? GROUP BY state",
      id,
    ) as { state: number; n: number; first: number }[];
    const of = (state: number) => rows.find((row) => row.state === state)?.n ?? 0;
    const retrying = (
      this.#get(
        `SELECT count(*) AS n FROM pending WHERE consumer = ? AND state = ${waiting} AND attempts > 0`,
        id,
      ) as { n: number }
    ).n;
    const unseen = this.#countUnseen(consumer);
    const first = Math.min(
      ...rows.map((row) => row.first),
      this.#after({ ...consumer, cursor }, 1)[0]?.position ?? Number.POSITIVE_INFINITY,
    );
    const oldest = Number.isFinite(first)
      ? (this.#get("SELECT at FROM messages WHERE position = ?", first) as
          | { at: number }
          | undefined)
      : undefined;
    const { n: dead } = this.#get("SELECT count(*) AS n FROM dead WHERE consumer = ?", id) as {
      n: number;
    };
    return {
      waiting: unseen + of(waiting) + of(leased) + of(held),
      inFlight: of(leased),
      retrying,
      dead,
      dropped: this.#dropped.get(id) ?? 0,
      oldestAt: oldest?.at,
    };
  }

  /** By subject: a filter may pass over some of them. */
  #countUnseen({ subjects, hashes, cursor }: StoredConsumer): number {
    const count = (condition: string, ...values: number[]) =>
      (
        this.#get(
          `SELECT count(*) AS n FROM (SELECT 1 FROM messages WHERE ${condition} AND position > ? LIMIT ${maxCounted})`,
          ...values,
          cursor,
        ) as { n: number }
      ).n;
    if (subjects === "all") return count(`subject_hash <> ${privateHash}`);
    return hashes.reduce((sum, each) => sum + count("subject_hash = ?", each), 0);
  }

  replay(
    consumer: StoredConsumer,
    from: { position?: number; time?: number; beforeCreation?: boolean },
  ): void {
    const { position, time } = from;
    const before =
      position === undefined
        ? ((
            this.#get("SELECT min(position) AS first FROM messages WHERE at >= ?", time ?? 0) as {
              first: number | null;
            }
          ).first ?? this.head + 1) - 1
        : position - 1;
    const least = from.beforeCreation === true ? 0 : consumer.since;
    consumer.cursor = Math.max(least, Math.min(before, this.head));
    this.#saveCursor(consumer);
  }

  deadLetters({ id }: StoredConsumer, after: number, limit: number) {
    return this.#page(
      "SELECT * FROM dead WHERE consumer = ? AND id > ? ORDER BY id LIMIT ?",
      [id, after, limit],
      ({ body }) => (body as Uint8Array).length,
    ).map((each) => {
      const row = each as unknown as Row & {
        id: number;
        buried_at: number;
        attempts: number;
        reason: string;
        message: string;
      };
      const { id: number, buried_at: buriedAt, attempts, reason, message } = row;
      return {
        id: number,
        buriedAt,
        attempts,
        reason,
        message,
        event: stored({ ...row, not_before: null }),
      };
    });
  }

  redrive(consumer: StoredConsumer, ids: readonly number[] | "all", now: number): number {
    return this.#eachDead(consumer, ids, (row) => {
      const position = this.#insert(now, null, privateHash, privateHash, row);
      const attributes = JSON.parse(row.attributes) as Record<string, string>;
      const order = consumer.orderBy ? (attributeOf(attributes, consumer.orderBy) ?? null) : null;
      this.#run(
        "INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?, ?)",
        consumer.id,
        position,
        waiting,
        0,
        0,
        0,
        order,
      );
    });
  }

  discard(consumer: StoredConsumer, ids: readonly number[] | "all"): number {
    return this.#eachDead(consumer, ids, () => {});
  }

  #eachDead(
    consumer: StoredConsumer,
    ids: readonly number[] | "all",
    handle: (row: Row) => void,
  ): number {
    const { id } = consumer;
    const remove = (number: number) => {
      const row = this.#get(
        `DELETE FROM dead WHERE consumer = ? AND id = ? RETURNING *, ${deadBytesOf} AS bytes`,
        id,
        number,
      ) as (Row & { bytes: number }) | undefined;
      if (!row) return 0;
      this.#countDead(consumer, -row.bytes);
      handle(row);
      return 1;
    };
    if (ids !== "all") return ids.reduce((sum, number) => sum + remove(number), 0);
    const all = this.#all("SELECT id FROM dead WHERE consumer = ? ORDER BY id", id);
    return all.reduce<number>((sum, row) => sum + remove((row as { id: number }).id), 0);
  }

  read(after: number, limit: number): WireStored[] {
    return this.#page(
      `SELECT * FROM messages WHERE position > ? AND subject_hash <> ${privateHash} ORDER BY position LIMIT ?`,
      [after, limit],
      ({ body }) => (body as Uint8Array).length,
    ).map((row) => stored(row as unknown as Row));
  }

  get messages(): number {
    return (this.#get("SELECT count(*) AS n FROM messages") as { n: number }).n;
  }

  put({ bucket, key, value, expiresAt }: WireRecord): void {
    this.#run(
      "INSERT INTO records VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value, expires = excluded.expires",
      bucket,
      key,
      value,
      expiresAt ?? null,
    );
  }

  get(bucket: string, key: string, now: number): string | undefined {
    const row = this.#get(
      "SELECT value FROM records WHERE bucket = ? AND key = ? AND (expires IS NULL OR expires > ?)",
      bucket,
      key,
      now,
    ) as { value: string } | undefined;
    return row?.value;
  }

  remove(bucket: string, key: string): void {
    this.#run("DELETE FROM records WHERE bucket = ? AND key = ?", bucket, key);
  }

  list(bucket: string, after: string, limit: number, now: number): WireRecord[] {
    return this.#page(
      "SELECT bucket, key, value, expires AS expiresAt FROM records WHERE bucket = ? AND key > ? AND (expires IS NULL OR expires > ?) ORDER BY key LIMIT ?",
      [bucket, after, now, limit],
      ({ value }) => (value as string).length,
    ) as unknown as WireRecord[];
  }

  /** Cursors move over what does not concern their consumers, so that it can be removed. */
  advanceCursors(): number {
    const { head } = this;
    let least = head;
    for (const consumer of this.consumers.values()) {
      if (consumer.cursor < head) {
        const before = consumer.cursor;
        const next = this.#after(consumer, 1)[0]?.position;
        consumer.cursor = next === undefined ? head : next - 1;
        if (consumer.cursor !== before) this.#saveCursor(consumer);
      }
      least = Math.min(least, consumer.cursor);
    }
    return least;
  }

  /** Removes up to `limit` messages that every consumer has done with, oldest first; returns how many there were. */
  removeDone(upTo: number, before: number, limit: number): number {
    const { changes } = this.#prepare(
      `DELETE FROM messages WHERE position IN (SELECT position FROM messages m WHERE position <= ? AND at < ?
       AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.position = m.position) ORDER BY position LIMIT ?)`,
    ).run(upTo, before, limit);
    return Number(changes);
  }

  /** What a consumer has not handled in time becomes its dead letters, at most `limit`. */
  expire(
    consumer: StoredConsumer,
    before: number,
    limit: number,
    now: number,
    why: Verdict,
  ): number {
    const late = this.#all(
      `SELECT p.position FROM pending p JOIN messages m ON m.position = p.position
       WHERE p.consumer = ? AND p.state <> ${leased} AND m.at < ? LIMIT ?`,
      consumer.id,
      before,
      limit,
    ) as { position: number }[];
    for (const { position } of late) this.bury(consumer, position, why, now);
    let count = late.length;
    while (count < limit) {
      const [row] = this.#after(consumer, 1);
      if (!row || row.at >= before) break;
      consumer.cursor = row.position;
      if (this.#take(consumer, { ...row, not_before: null }, now))
        this.bury(consumer, row.position, why, now);
      count++;
    }
    if (count > late.length) this.#saveCursor(consumer);
    return count;
  }

  removeExpiredRecords(now: number): void {
    this.#run("DELETE FROM records WHERE expires IS NOT NULL AND expires <= ?", now);
  }

  /** Rows until they come to a page; others are not even read. */
  #page(
    sql: string,
    values: readonly (string | number)[],
    bytesOf: (row: Record<string, unknown>) => number,
  ): Record<string, unknown>[] {
    const rows: Record<string, unknown>[] = [];
    let bytes = 0;
    for (const row of this.#prepare(sql).iterate(...values)) {
      rows.push(row);
      bytes += bytesOf(row);
      if (bytes >= maxPageBytes) break;
    }
    return rows;
  }

  #prepare(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) this.#statements.set(sql, (statement = this.database.prepare(sql)));
    return statement;
  }
  #run(sql: string, ...values: (string | number | null)[]): void {
    this.#prepare(sql).run(...values);
  }
  #get(sql: string, ...values: (string | number | null)[]): unknown {
    return this.#prepare(sql).get(...values);
  }
  #all(sql: string, ...values: (string | number | null)[]): unknown[] {
    return this.#prepare(sql).all(...values);
  }
}

function consumerOf(id: number, name: string, text: string) {
  const options = JSON.parse(text) as WireOptions & { since?: number };
  const { subjects, filter, orderBy, owner = name, since = 0 } = options;
  return {
    since,
    id,
    name,
    text,
    owner,
    subjects: subjects === "all" ? subjects : new Set(subjects),
    hashes: subjects === "all" ? [] : [...new Set(subjects.map(hashOf))],
    filter: filter === undefined ? undefined : (JSON.parse(filter) as Filter),
    orderBy,
  };
}

function stored({ position, at, not_before, subject, key, attributes, body }: Row): WireStored {
  return { position, at, notBefore: not_before ?? undefined, subject, key, attributes, body };
}
