import { hash } from "node:crypto";
import { KnownKeys } from "./known-keys.ts";
import { type WireMessage, type WireStored } from "./protocol.ts";
import { privateHash } from "./schema.ts";
import { type Statements } from "./statements.ts";

/** What a message takes besides its body, about. */
export const rowBytes = 1_024;
/** More waiting messages are not counted. */
const maxCounted = 1_000_000;

/** A message as it is in its table. */
export interface MessageRow {
  position: number;
  at: number;
  not_before: number | null;
  subject: string;
  key: string;
  attributes: string;
  body: Uint8Array;
}

/** What a reader of the log chooses, and how far it has come. */
export interface Reading {
  readonly subjects: ReadonlySet<string> | "all";
  /** Of the subjects; none for `all`. */
  readonly hashes: readonly number[];
  /** The last position that it has looked at. */
  readonly cursor: number;
}

/** Of 48 bits, never 0: an index of numbers is half the size of one of texts, and what it finds is compared. */
export const hashOf = (text: string): number => hash("sha1", text, "buffer").readUIntBE(0, 6) || 1;

export function storedOf(row: MessageRow): WireStored {
  const { position, at, not_before, subject, key, attributes, body } = row;
  return { position, at, notBefore: not_before ?? undefined, subject, key, attributes, body };
}

/** The log: what has been accepted, in that order. It knows nothing of consumers. */
export class Messages {
  readonly #statements: Statements;
  readonly #keys: KnownKeys;

  /** Keys are compared with those of the last `duplicatesMs`. */
  constructor(statements: Statements, duplicatesMs: number) {
    this.#statements = statements;
    this.#keys = new KnownKeys(duplicatesMs);
  }

  /** Once, before anything is appended: keys of what was accepted after `since` are known again. */
  loadKeys(since: number): void {
    const rows = this.#statements.iterate(
      `SELECT position, at, key_hash FROM messages WHERE at > ? AND key_hash <> ${privateHash} ORDER BY at, position`,
      since,
    );
    for (const { position, at, key_hash: hash } of rows as Iterable<Record<string, number>>)
      this.#keys.add(hash ?? 0, position ?? 0, at ?? 0);
  }

  /** The last position so far, also of messages that have been removed. */
  get head(): number {
    const row = this.#statements.get("SELECT seq FROM sqlite_sequence WHERE name = 'messages'");
    return (row as { seq: number } | undefined)?.seq ?? 0;
  }

  get count(): number {
    return (this.#statements.get("SELECT count(*) AS n FROM messages") as { n: number }).n;
  }

  /** A message whose key was accepted after `since` is the same one again. */
  append(
    message: WireMessage,
    now: number,
    since: number,
  ): { position: number; isDuplicate: boolean } {
    const keyHash = hashOf(message.key);
    for (const known of this.#keys.find(keyHash)) {
      const row = this.#statements.get("SELECT key, at FROM messages WHERE position = ?", known) as
        | { key: string; at: number }
        | undefined;
      if (row?.key === message.key && row.at > since) return { position: known, isDuplicate: true };
    }
    const position = this.#insert(
      now,
      message.notBefore ?? null,
      hashOf(message.subject),
      keyHash,
      message,
    );
    this.#keys.add(keyHash, position, now);
    return { position, isDuplicate: false };
  }

  /** A message that no consumer chooses by its subject, and whose key is not compared with others; returns its position. */
  appendPrivate(row: MessageRow, now: number): number {
    return this.#insert(now, null, privateHash, privateHash, row);
  }

  #insert(
    at: number,
    notBefore: number | null,
    subjectHash: number,
    keyHash: number,
    {
      subject,
      key,
      attributes,
      body,
    }: Pick<WireMessage, "subject" | "key" | "attributes" | "body">,
  ): number {
    const { lastInsertRowid } = this.#statements.run(
      "INSERT INTO messages (at, not_before, subject_hash, key_hash, subject, key, attributes, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
      at,
      notBefore,
      subjectHash,
      keyHash,
      subject,
      key,
      attributes,
      body,
    );
    return Number(lastInsertRowid);
  }

  read(after: number, limit: number): WireStored[] {
    return this.#statements
      .page(
        `SELECT * FROM messages WHERE position > ? AND subject_hash <> ${privateHash} ORDER BY position LIMIT ?`,
        [after, limit],
        ({ body }) => (body as Uint8Array).length,
      )
      .map((row) => storedOf(row as unknown as MessageRow));
  }

  /** The next messages by subject, with those that only have the same hash. */
  after({ subjects, hashes, cursor }: Reading, limit: number): MessageRow[] {
    if (subjects === "all")
      return this.#statements.all(
        `SELECT * FROM messages WHERE position > ? AND subject_hash <> ${privateHash} ORDER BY position LIMIT ?`,
        cursor,
        limit,
      ) as MessageRow[];
    const query =
      "SELECT * FROM messages WHERE subject_hash = ? AND position > ? ORDER BY position LIMIT ?";
    const [only, ...others] = hashes;
    if (only === undefined) return [];
    if (others.length === 0)
      return this.#statements.all(query, only, cursor, limit) as MessageRow[];
    // Each subject has its own range of the index: bodies are read only of those that come first of all of them.
    const positions = hashes.flatMap((each) =>
      this.#statements
        .all(query.replace("*", "position"), each, cursor, limit)
        .map((row) => (row as { position: number }).position),
    );
    return positions
      .sort((a, b) => a - b)
      .slice(0, limit)
      .map(
        (position) =>
          this.#statements.get("SELECT * FROM messages WHERE position = ?", position) as MessageRow,
      );
  }

  /** By subject: a filter may pass over some of them. */
  countAfter({ subjects, hashes, cursor }: Reading): number {
    const count = (condition: string, ...values: number[]) =>
      (
        this.#statements.get(
          `SELECT count(*) AS n FROM (SELECT 1 FROM messages WHERE ${condition} AND position > ? LIMIT ${maxCounted})`,
          ...values,
          cursor,
        ) as { n: number }
      ).n;
    if (subjects === "all") return count(`subject_hash <> ${privateHash}`);
    return hashes.reduce((sum, each) => sum + count("subject_hash = ?", each), 0);
  }

  /** What is not to be handed out before a time after `now` may be so earlier, by so many milliseconds. */
  bringForward(ms: number, now: number): void {
    this.#statements.run(
      "UPDATE messages SET not_before = not_before - ? WHERE not_before > ?",
      ms,
      now,
    );
  }

  /** When the latest message was accepted; undefined without any. */
  latestAt(): number | undefined {
    const row = this.#statements.get("SELECT max(at) AS at FROM messages") as { at: number | null };
    return row.at ?? undefined;
  }

  /** When the message of this position was accepted. */
  acceptedAt(position: number): number | undefined {
    const row = this.#statements.get("SELECT at FROM messages WHERE position = ?", position);
    return (row as { at: number } | undefined)?.at;
  }

  /** The last message that was accepted before this time; where there are few of them, it is found quickly. */
  lastBefore(time: number): number | undefined {
    // Without the index, SQLite reads the log from its end, to its beginning if there is none.
    const row = this.#statements.get(
      "SELECT max(position) AS last FROM messages INDEXED BY messages_by_time WHERE at < ?",
      time,
    ) as { last: number | null };
    return row.last ?? undefined;
  }

  /** The latest message that was accepted before this time, however many there are. */
  latestBefore(time: number): number | undefined {
    const row = this.#statements.get(
      "SELECT max(position) AS last FROM messages WHERE at = (SELECT max(at) FROM messages WHERE at < ?)",
      time,
    ) as { last: number | null };
    return row.last ?? undefined;
  }

  /** The first message that was accepted at this time or later. */
  firstSince(time: number): number | undefined {
    const row = this.#statements.get(
      "SELECT min(position) AS first FROM messages WHERE at >= ?",
      time,
    ) as { first: number | null };
    return row.first ?? undefined;
  }
}
