import { type Filter } from "../filter.ts";
import { hashOf, type Messages, type Reading } from "./messages.ts";
import { type Operation, type WireOptions } from "./protocol.ts";
import { type Statements } from "./statements.ts";

export interface StoredConsumer extends Reading {
  id: number;
  name: string;
  /** Its options, as they are stored. */
  text: string;
  filter: Filter | undefined;
  orderBy: string | undefined;
  deadlineMs: number | undefined;
  cursor: number;
  owner: string;
  /** Messages up to here were there before it. */
  since: number;
  /** How many of its messages wait for earlier ones of their order; counted in `pending.ts`. */
  held: number;
  /** Bytes of what is handed out, by position; kept in `leases.ts`. */
  leased: Map<number, number>;
  /** Of its dead letters; counted in `dead-letters.ts`. */
  deadBytes: number;
}

/** Who reads the log, and how far each has come; all of them are in memory. */
export class Consumers {
  readonly #statements: Statements;
  readonly #messages: Messages;
  readonly #byId = new Map<number, StoredConsumer>();

  constructor(statements: Statements, messages: Messages) {
    this.#statements = statements;
    this.#messages = messages;
  }

  /** As they are stored; the other tables then count what they have of them. */
  reload(): void {
    this.#byId.clear();
    for (const row of this.#statements.all("SELECT id, name, cursor, options FROM consumers")) {
      const { id, name, cursor, options } = row as Record<"id" | "cursor", number> &
        Record<"name" | "options", string>;
      this.#byId.set(id, created(id, name, options, cursor));
    }
  }

  get(id: number): StoredConsumer | undefined {
    return this.#byId.get(id);
  }

  find(name: string): StoredConsumer | undefined {
    return [...this.#byId.values()].find((consumer) => consumer.name === name);
  }

  ids(): Iterable<number> {
    return this.#byId.keys();
  }

  values(): Iterable<StoredConsumer> {
    return this.#byId.values();
  }

  /** Creates it, or gives it other options; what it has begun, it continues. */
  put(name: string, options: WireOptions): StoredConsumer {
    const known = this.find(name);
    const since = known?.since ?? (options.from === "start" ? 0 : this.#messages.head);
    const text = JSON.stringify({ ...options, since });
    if (known) {
      const isSame = known.text === text;
      if (isSame) return known;
      this.#statements.run("UPDATE consumers SET options = ? WHERE id = ?", text, known.id);
      // What is handed out is counted as this owner's; a new owner has effect when it is loaded again.
      const { owner } = known;
      const changed = { ...known, ...optionsOf(known.id, name, text), owner };
      this.#byId.set(known.id, changed);
      return changed;
    }
    const cursor = since;
    const { lastInsertRowid } = this.#statements.run(
      "INSERT INTO consumers (name, cursor, options) VALUES (?, ?, ?)",
      name,
      cursor,
      text,
    );
    const consumer = created(Number(lastInsertRowid), name, text, cursor);
    this.#byId.set(consumer.id, consumer);
    return consumer;
  }

  remove(id: number): void {
    this.#statements.run("DELETE FROM consumers WHERE id = ?", id);
    this.#byId.delete(id);
  }

  /** Persisted lazily: what is looked at twice is not handed out twice, because it is pending. */
  saveCursor({ id, cursor }: StoredConsumer): void {
    this.#statements.run("UPDATE consumers SET cursor = ? WHERE id = ?", cursor, id);
  }

  /** Back, or forward, to a place in the log; not to before its creation, unless that is asked for. */
  replay(
    consumer: StoredConsumer,
    { position, time, beforeCreation }: Omit<Extract<Operation, { op: "replay" }>, "op">,
  ): void {
    const first = position ?? this.#messages.firstSince(time ?? 0) ?? this.#messages.head + 1;
    const least = beforeCreation === true ? 0 : consumer.since;
    consumer.cursor = Math.max(least, Math.min(first - 1, this.#messages.head));
    this.saveCursor(consumer);
  }

  /** Owners and their consumers, those with the most first. */
  largestFirst(bytesOf: (consumer: StoredConsumer) => number) {
    const owners = new Map<string, { bytes: number; consumers: StoredConsumer[] }>();
    for (const consumer of this.#byId.values()) {
      const known = owners.get(consumer.owner) ?? { bytes: 0, consumers: [] };
      known.bytes += bytesOf(consumer);
      known.consumers.push(consumer);
      owners.set(consumer.owner, known);
    }
    for (const { consumers } of owners.values()) consumers.sort((a, b) => bytesOf(b) - bytesOf(a));
    return [...owners.values()].sort((a, b) => b.bytes - a.bytes);
  }
}

function created(id: number, name: string, text: string, cursor: number): StoredConsumer {
  return { ...optionsOf(id, name, text), cursor, held: 0, deadBytes: 0, leased: new Map() };
}

function optionsOf(id: number, name: string, text: string) {
  const options = JSON.parse(text) as WireOptions & { since?: number };
  const { subjects, filter, orderBy, deadlineMs, owner = name, since = 0 } = options;
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
    deadlineMs,
  };
}
