import {
  AckPolicy,
  type ConsumerInfo,
  type ConsumerUpdateConfig,
  DeliverPolicy,
  JetStreamApiError,
} from "@nats-io/jetstream";
import { type ConsumerOptions, type ReplayFrom } from "../queue.ts";
import { readLog } from "./log-reader.ts";
import { type Link, patiently } from "./publishing.ts";

/** What a consumer of the queue has on the server, in the metadata of the consumer there. */
interface Kept {
  name: string;
  /** Messages up to here were there before it. */
  since: number;
  options: Omit<ConsumerOptions, "from">;
}

const metadataKey = "spry";
const nanos = 1_000_000;
/** More that wait for their next attempt hold up what is new. */
const maxPending = 50_000;
/** Subjects whose oldest message is looked for one by one. */
const maxLookedFor = 10;
const consumerNotFound = 10_014;

/** A consumer as the server knows it. */
export class ServerConsumer {
  readonly ackWaitMs: number;
  readonly #link: Link;
  readonly #name: string;
  readonly #durable: string;

  constructor(link: Link, name: string, ackWaitMs: number) {
    this.#link = link;
    this.#name = name;
    this.#durable = link.names.durable(name);
    this.ackWaitMs = ackWaitMs;
  }

  get nextSubject(): string {
    return `$JS.API.CONSUMER.MSG.NEXT.${this.#link.names.stream}.${this.#durable}`;
  }

  async info(): Promise<ConsumerInfo> {
    const { manager, names } = this.#link;
    return manager.consumers.info(names.stream, this.#durable);
  }

  async find(): Promise<ConsumerInfo | undefined> {
    try {
      return await this.info();
    } catch (error) {
      if (error instanceof JetStreamApiError && error.code === consumerNotFound) return undefined;
      throw error;
    }
  }

  /** Creates it, or gives it other options; what it has begun, it continues. */
  async put(options: ConsumerOptions): Promise<ConsumerInfo> {
    const { manager, names } = this.#link;
    return patiently(async () => {
      const known = await this.find();
      if (known) {
        const { since } = keptOf(known) ?? { since: 0 };
        const changed = this.#changeable(options, since);
        if (sameAs(known, changed)) return known;
        return manager.consumers.update(names.stream, this.#durable, changed);
      }
      const { state } = await manager.streams.info(names.stream);
      const since = options.from === "start" ? 0 : state.last_seq;
      return this.#create(options, since, since + 1);
    });
  }

  async #create(options: ConsumerOptions, since: number, first: number): Promise<ConsumerInfo> {
    const { manager, names } = this.#link;
    return manager.consumers.add(names.stream, {
      ...this.#changeable(options, since),
      durable_name: this.#durable,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: Math.max(1, first),
    });
  }

  #changeable(options: ConsumerOptions, since: number): Partial<ConsumerUpdateConfig> {
    const { from: _, ...rest } = options;
    const kept: Kept = { name: this.#name, since, options: rest };
    return {
      filter_subjects: this.#filterSubjects(options),
      ack_wait: this.ackWaitMs * nanos,
      max_deliver: -1,
      max_ack_pending: maxPending,
      metadata: { [metadataKey]: JSON.stringify(kept) },
    };
  }

  #filterSubjects({ subjects }: ConsumerOptions): string[] {
    const { names } = this.#link;
    const chosen =
      subjects === "all"
        ? [names.allMessages]
        : [...new Set(subjects.map((subject) => names.message(subject)))];
    return [...chosen, names.private(this.#name)];
  }

  /**
   * From another place: never later than what still waits. The server's consumer is another one then, which knows nothing of
   * earlier attempts.
   */
  async startAgain(from: ReplayFrom, options: ConsumerOptions): Promise<void> {
    const { connection, manager, names } = this.#link;
    const info = await this.info();
    const { since } = keptOf(info) ?? { since: 0 };
    const { state } = await manager.streams.info(names.stream);
    const wanted =
      "position" in from ? from.position : await this.#firstSince(from.time, state.last_seq);
    const least = from.beforeCreation === true ? 1 : since + 1;
    const first = Math.min(Math.max(least, wanted), info.ack_floor.stream_seq + 1);
    await manager.consumers.delete(names.stream, this.#durable);
    // Before it hands out anything again: who takes from it may have acknowledged that, and would not pass it on.
    connection.publish(names.again(this.#name));
    await connection.flush();
    await patiently(() => this.#create(options, since, Math.max(least, first)));
  }

  async #firstSince(time: number, head: number): Promise<number> {
    const { manager, names } = this.#link;
    const found = await manager.direct
      .getMessage(names.stream, { start_time: new Date(time), next_by_subj: names.allMessages })
      .catch(() => null);
    return found?.seq ?? head + 1;
  }

  /** When the oldest of those that wait was accepted, about: where there are many subjects, it may be another's. */
  async oldestAt(info: ConsumerInfo): Promise<number | undefined> {
    const { manager, names } = this.#link;
    const isPending = info.num_ack_pending > 0;
    const seq = (isPending ? info.ack_floor : info.delivered).stream_seq + 1;
    const filters = info.config.filter_subjects ?? [];
    const subjects = filters.length > maxLookedFor ? [names.allMessages] : filters;
    let oldest: number | undefined;
    for (const subject of subjects) {
      const page = { seq, subject, limit: 1, maxBytes: 1 };
      const [found] = await readLog(manager, names.stream, page);
      const at = found ? Date.parse(found.timestamp) : undefined;
      if (at !== undefined && (oldest === undefined || at < oldest)) oldest = at;
    }
    return oldest;
  }

  async remove(): Promise<void> {
    const { manager, names } = this.#link;
    if (await this.find()) await manager.consumers.delete(names.stream, this.#durable);
    await manager.streams.purge(names.stream, { filter: names.private(this.#name) });
    await manager.streams.purge(names.deadStream, { filter: names.dead(this.#name) });
  }
}

/** Undefined: another program's. */
export function keptOf(info: ConsumerInfo): Kept | undefined {
  const text = info.config.metadata?.[metadataKey];
  return text === undefined ? undefined : (JSON.parse(text) as Kept);
}

function sameAs({ config }: ConsumerInfo, wanted: Partial<ConsumerUpdateConfig>): boolean {
  return (
    config.metadata?.[metadataKey] === wanted.metadata?.[metadataKey] &&
    config.ack_wait === wanted.ack_wait &&
    config.max_ack_pending === wanted.max_ack_pending
  );
}
