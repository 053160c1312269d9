import { type Logger } from "@spry/kube";
import { QueueFullError, QueueUnavailableError } from "../errors.ts";
import {
  type Appended,
  type Consumer,
  type ConsumerOptions,
  maxPageBytes,
  type Message,
  type NewMessage,
  type Queue,
  type QueueLimits,
  type QueueState,
  type RecordWrite,
  type StoredRecord,
} from "../queue.ts";
import { Shares } from "../shares.ts";
import { decode } from "./frame.ts";
import { type ConsumerDeps, JetStreamConsumer } from "./jetstream-consumer.ts";
import { readLog } from "./log-reader.ts";
import { type Link, Publishing } from "./publishing.ts";
import { Records } from "./records.ts";
import { keptOf, ServerConsumer } from "./server-consumer.ts";
import { listConsumers, upkeep } from "./upkeep.ts";

const upkeepMs = 30_000;
/** Between two attempts to make room for those who would be refused. */
const roomPauseMs = 1_000;

/** A queue in two streams of JetStream: one of messages and records, one of dead letters. */
export class JetStreamQueue implements Queue {
  readonly #link: Link;
  readonly #limits: QueueLimits;
  readonly #ackWaitMs: number;
  readonly #publishing: Publishing;
  readonly #records: Records;
  readonly #consumers = new Map<string, JetStreamConsumer>();
  readonly #deps: ConsumerDeps;
  readonly #timers: NodeJS.Timeout[];
  readonly #upkeep: () => Promise<void>;
  #madeRoomAt = -roomPauseMs;
  #isWaking = false;

  constructor(link: Link, limits: QueueLimits, ackWaitMs: number, log: Logger) {
    this.#link = link;
    this.#limits = limits;
    this.#ackWaitMs = ackWaitMs;
    this.#publishing = new Publishing(link);
    this.#records = new Records(link);
    const shares = new Shares(limits.maxLeasedBytes);
    const publishing = this.#publishing;
    const records = this.#records;
    this.#deps = { link, publishing, records, limits, shares, freed: () => this.#freed(), log };
    const consumers = this.#consumers;
    this.#upkeep = () => upkeep({ link, limits, consumers, log });
    this.#timers = [
      setInterval(() => this.#keepAlive(), ackWaitMs / 3),
      setInterval(() => void this.#upkeep(), upkeepMs),
    ];
    for (const timer of this.#timers) timer.unref();
    link.connection.subscribe(link.names.allAgain, {
      callback: (error, { subject }) => {
        if (error) return;
        for (const [name, consumer] of consumers)
          if (link.names.again(name) === subject) consumer.forgetAll();
      },
    });
  }

  #keepAlive(): void {
    for (const consumer of this.#consumers.values()) consumer.keepAlive();
  }

  #freed(): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    setImmediate(() => {
      this.#isWaking = false;
      for (const consumer of this.#consumers.values()) consumer.roomAgain();
    });
  }

  async append(
    messages: readonly NewMessage[],
    records: readonly RecordWrite[] = [],
  ): Promise<Appended[]> {
    try {
      return await this.#publishing.append(messages, records);
    } catch (error) {
      if (!(error instanceof QueueFullError) || !(await this.#madeRoom())) throw error;
      return this.#publishing.append(messages, records);
    }
  }

  /** What is handled is removed at once when space is short, and not only when upkeep is due; false: that was tried just now. */
  async #madeRoom(): Promise<boolean> {
    const now = performance.now();
    if (now - this.#madeRoomAt < roomPauseMs) return false;
    this.#madeRoomAt = now;
    await this.#upkeep();
    return true;
  }

  async consumer(name: string, options: ConsumerOptions): Promise<Consumer> {
    return this.#reached(async () => {
      const server = this.#server(name);
      const info = await server.put(options);
      return this.#attach(name, options, server, info.num_ack_pending);
    });
  }

  async find(name: string): Promise<Consumer | undefined> {
    return this.#reached(async () => {
      const server = this.#server(name);
      const info = await server.find();
      const kept = info && keptOf(info);
      if (!kept) return undefined;
      return (
        this.#consumers.get(name) ?? this.#attach(name, kept.options, server, info.num_ack_pending)
      );
    });
  }

  #server(name: string): ServerConsumer {
    return new ServerConsumer(this.#link, name, this.#ackWaitMs);
  }

  #attach(name: string, options: ConsumerOptions, server: ServerConsumer, pending: number) {
    const known = this.#consumers.get(name);
    if (known) {
      known.use(options);
      return known;
    }
    const consumer = new JetStreamConsumer(name, options, server, pending, this.#deps);
    this.#consumers.set(name, consumer);
    return consumer;
  }

  async removeConsumer(name: string): Promise<void> {
    await this.#reached(async () => {
      await this.#consumers.get(name)?.close(false);
      this.#consumers.delete(name);
      await this.#server(name).remove();
      await this.#records.removeAll(`tries/${name}`);
    });
  }

  async consumerNames(): Promise<string[]> {
    return this.#reached(async () => {
      const found: string[] = [];
      for await (const { kept } of listConsumers(this.#link)) found.push(kept.name);
      return found;
    });
  }

  async read({ after, limit }: { after: number; limit: number }): Promise<Message[]> {
    const { manager, names } = this.#link;
    const page = { seq: after + 1, subject: names.allMessages, limit, maxBytes: maxPageBytes };
    const stored = await this.#reached(() => readLog(manager, names.stream, page));
    return stored.flatMap(({ seq, data, timestamp }) => {
      const found = decode(data, seq, Date.parse(timestamp));
      return found ? [found.message] : [];
    });
  }

  async head(): Promise<number> {
    return (await this.#state()).last_seq;
  }

  async state(): Promise<QueueState> {
    const { messages, bytes } = await this.#state();
    return { messages, bytes, maxBytes: this.#limits.maxBytes };
  }

  async #state() {
    const { manager, names } = this.#link;
    return (await this.#reached(() => manager.streams.info(names.stream))).state;
  }

  async put(record: RecordWrite): Promise<void> {
    await this.#publishing.append([], [record]);
  }
  async get(bucket: string, key: string): Promise<string | undefined> {
    return this.#reached(() => this.#records.get(bucket, key));
  }
  async remove(bucket: string, key: string): Promise<void> {
    await this.#reached(() => this.#records.remove(bucket, key));
  }
  async list(bucket: string, page: { after?: string; limit: number }): Promise<StoredRecord[]> {
    return this.#reached(() => this.#records.list(bucket, page, maxPageBytes));
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all([...this.#consumers.values()].map((consumer) => consumer.close(true)));
    await this.#link.connection.drain().catch(() => {});
  }

  /** For tests: as if the process had been killed. */
  abandon(): void {
    for (const timer of this.#timers) clearInterval(timer);
    void this.#link.connection.close();
  }

  /** What fails is not known to have happened. */
  async #reached<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof QueueUnavailableError) throw error;
      const why = error instanceof Error ? error.message : String(error);
      throw new QueueUnavailableError(`the NATS servers cannot be used: ${why}`, { cause: error });
    }
  }
}
