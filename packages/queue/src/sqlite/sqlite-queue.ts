import {
  type Appended,
  type Consumer,
  type ConsumerOptions,
  type ConsumerState,
  type DeadLetter,
  type Delivery,
  type Message,
  type NewMessage,
  type Queue,
  type QueueState,
  type RecordWrite,
  type ReplayFrom,
  type StoredRecord,
  type Verdict,
} from "../queue.ts";
import { type Operation, type WireDelivery, type WireStored } from "./protocol.ts";

/** Sends an operation to the database and resolves with what it answers. */
export type Ask = (operation: Operation) => Promise<unknown>;

/** The queue, as its users see it: the database is in another thread. */
export class SqliteQueue implements Queue {
  readonly #ask: Ask;
  readonly #say: (operation: Operation) => void;
  readonly #end: () => Promise<void>;

  constructor(ask: Ask, say: (operation: Operation) => void, end: () => Promise<void>) {
    this.#ask = ask;
    this.#say = say;
    this.#end = end;
  }

  async append(
    messages: readonly NewMessage[],
    records: readonly RecordWrite[] = [],
  ): Promise<Appended[]> {
    const operation: Operation = {
      op: "append",
      messages: messages.map(({ subject, key, attributes, body, notBefore }) => ({
        subject,
        key,
        attributes: JSON.stringify(attributes),
        body: alone(body),
        notBefore,
      })),
      records: records.map(wireRecord),
    };
    return (await this.#ask(operation)) as Appended[];
  }

  async consumer(name: string, options: ConsumerOptions): Promise<Consumer> {
    const { subjects, filter, orderBy, deadlineMs, from = "now", owner } = options;
    const id = (await this.#ask({
      op: "consumer",
      name,
      options: {
        subjects,
        filter: filter && JSON.stringify(filter),
        orderBy,
        deadlineMs,
        from,
        owner,
      },
    })) as number;
    return new SqliteConsumer(name, id, this.#ask, this.#say);
  }

  async find(name: string): Promise<Consumer | undefined> {
    const id = (await this.#ask({ op: "find", name })) as number | undefined;
    return id === undefined ? undefined : new SqliteConsumer(name, id, this.#ask, this.#say);
  }

  async removeConsumer(name: string): Promise<void> {
    await this.#ask({ op: "removeConsumer", name });
  }
  async consumerNames(): Promise<string[]> {
    return (await this.#ask({ op: "consumerNames" })) as string[];
  }
  async read(page: { after: number; limit: number }): Promise<Message[]> {
    const rows = (await this.#ask({ op: "read", ...page })) as WireStored[];
    return rows.map(messageOfRow);
  }
  async head(): Promise<number> {
    return (await this.#ask({ op: "head" })) as number;
  }
  async state(): Promise<QueueState> {
    return (await this.#ask({ op: "state" })) as QueueState;
  }
  async put(record: RecordWrite): Promise<void> {
    await this.#ask({ op: "append", messages: [], records: [wireRecord(record)] });
  }
  async get(bucket: string, key: string): Promise<string | undefined> {
    return (await this.#ask({ op: "get", bucket, key })) as string | undefined;
  }
  async remove(bucket: string, key: string): Promise<void> {
    await this.#ask({ op: "remove", bucket, key });
  }
  async list(
    bucket: string,
    { after = "", limit }: { after?: string; limit: number },
  ): Promise<StoredRecord[]> {
    return (await this.#ask({ op: "list", bucket, after, limit })) as StoredRecord[];
  }
  async close(): Promise<void> {
    await this.#ask({ op: "close" }).catch(() => {});
    await this.#end();
  }
}

class SqliteConsumer implements Consumer {
  readonly name: string;
  readonly #id: number;
  readonly #ask: Ask;
  readonly #say: (operation: Operation) => void;

  constructor(name: string, id: number, ask: Ask, say: (operation: Operation) => void) {
    this.name = name;
    this.#id = id;
    this.#ask = ask;
    this.#say = say;
  }

  async next(max: number, signal: AbortSignal): Promise<Delivery[]> {
    if (signal.aborted) return [];
    const consumer = this.#id;
    const cancel = () => this.#say({ op: "cancelNext", consumer });
    signal.addEventListener("abort", cancel, { once: true });
    try {
      const rows = (await this.#ask({ op: "next", consumer, max })) as WireDelivery[];
      return rows.map((row) => this.#deliveryOf(row));
    } finally {
      signal.removeEventListener("abort", cancel);
    }
  }

  #deliveryOf(row: WireDelivery): Delivery {
    const { position } = row;
    const consumer = this.#id;
    const say = this.#say;
    return {
      message: messageOfRow(row),
      attempt: row.attempt,
      failures: row.failures,
      firstAt: row.firstAt,
      ack: () => say({ op: "ack", consumer, position }),
      retry: (afterMs, { counts = true } = {}) =>
        say({ op: "retry", consumer, position, afterMs, counts }),
      bury: (why: Verdict, { counts = true } = {}) =>
        say({ op: "bury", consumer, position, why, counts }),
    };
  }

  async state(): Promise<ConsumerState> {
    const state = await this.#ask({ op: "consumerState", consumer: this.#id });
    return (state ?? { waiting: 0, inFlight: 0, retrying: 0, dead: 0 }) as ConsumerState;
  }
  async replay(from: ReplayFrom): Promise<void> {
    await this.#ask({ op: "replay", consumer: this.#id, ...from });
  }
  async deadLetters({
    after = 0,
    limit,
  }: {
    after?: number;
    limit: number;
  }): Promise<DeadLetter[]> {
    const rows = await this.#ask({ op: "deadLetters", consumer: this.#id, after, limit });
    return ((rows ?? []) as (Omit<DeadLetter, "event"> & { event: WireStored })[]).map(
      ({ event, ...rest }) => ({ ...rest, event: messageOfRow(event) }),
    );
  }
  async deadLetter(id: number): Promise<DeadLetter | undefined> {
    const [found] = await this.deadLetters({ after: id - 1, limit: 1 });
    return found?.id === id ? found : undefined;
  }
  async redrive(ids: readonly number[] | "all"): Promise<number> {
    return ((await this.#ask({ op: "redrive", consumer: this.#id, ids })) ?? 0) as number;
  }
  async discard(ids: readonly number[] | "all"): Promise<number> {
    return ((await this.#ask({ op: "discard", consumer: this.#id, ids })) ?? 0) as number;
  }
}

/** In a buffer of its own: a clone of a view is one of the whole buffer behind it, which may be a pool of many kilobytes. */
const alone = (body: Uint8Array): Uint8Array =>
  body.byteLength === body.buffer.byteLength ? body : new Uint8Array(body);

const wireRecord = ({ bucket, key, value, expiresAt, replaces }: RecordWrite) => ({
  bucket,
  key,
  value,
  expiresAt,
  replaces,
});

function messageOfRow({ attributes, ...row }: WireStored): Message {
  return { ...row, attributes: JSON.parse(attributes) as Record<string, string> };
}
