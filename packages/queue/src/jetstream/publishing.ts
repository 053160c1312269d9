import { randomBytes } from "node:crypto";
import { type JetStreamClient, JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import { headers, type MsgHdrs, type NatsConnection } from "@nats-io/transport-node";
import { messageOf } from "@spry/kube";
import { QueueFullError, QueueUnavailableError, RecordChangedError } from "../errors.ts";
import { type Appended, type NewMessage, type RecordWrite } from "../queue.ts";
import { encode } from "./frame.ts";
import { type Names } from "./names.ts";
import { Records } from "./records.ts";

/** What the driver's parts share. */
export interface Link {
  connection: NatsConnection;
  client: JetStreamClient;
  manager: JetStreamManager;
  names: Names;
}

/** Error codes of JetStream's API. */
const codes = {
  duplicateInBatch: 10201,
  /** Store failed: also when the stream has as many bytes as it may. */
  storeFailed: 10077,
  insufficientResources: 10023,
  accountResources: 10002,
  storageResources: 10047,
} as const;
const fullCodes = new Set<number>([
  codes.storeFailed,
  codes.insufficientResources,
  codes.accountResources,
  codes.storageResources,
]);

/** The server knows 50 batches of a stream at a time; other writers need some of them. */
const maxBatches = 20;
/** The server's own limit of one batch. */
const maxOfBatch = 1_000;
const attemptMs = 3_000;
/** A shorter delay makes no difference to how long a message is kept. */
const delayedFromSeconds = 3_600;
/** After that: as long as the stream keeps other messages. */
const delayedLifeSeconds = 8 * 86_400;
/** Through the election of another leader; then the caller gets the error. */
const patienceMs = 12_000;
const pauseMs = 100;

/** Writes messages and records, again and again until the servers have them; their ids keep them from being there twice. */
export class Publishing {
  readonly #link: Link;
  #batches = 0;
  readonly #waiting: (() => void)[] = [];

  readonly #records: Records;

  constructor(link: Link) {
    this.#link = link;
    this.#records = new Records(link);
  }

  async append(
    messages: readonly NewMessage[],
    records: readonly RecordWrite[],
  ): Promise<Appended[]> {
    const { names } = this.#link;
    const max = this.#link.connection.info?.max_payload ?? 1024 ** 2;
    const entries = [
      ...messages.map((message) => ({
        subject: names.message(message.subject),
        data: encode(message),
        id: names.id(message.key),
        ttl: lifeOf(message),
        replaces: undefined,
      })),
      ...records.map((record) => recordEntry(record, names)),
    ];
    for (const { data } of entries) {
      // What the headers take is about 200 bytes.
      if (data.length + 512 > max)
        throw new QueueFullError(
          `the queue is full: the NATS server takes messages of up to ${max} bytes, and this one has ${data.length}: raise its max_payload`,
        );
    }
    const isAtomic = records.length > 0 && entries.length > 1 && entries.length <= maxOfBatch;
    if (!isAtomic) return (await this.#each(entries)).slice(0, messages.length);
    return this.#atomic(entries, messages.length);
  }

  /** One message that is not one of a user's: a dead letter, or one that is redriven. */
  async write(subject: string, data: Uint8Array, id: string): Promise<number> {
    const [appended] = await this.#each([
      { subject, data, id, ttl: undefined, replaces: undefined },
    ]);
    return appended?.position ?? 0;
  }

  async #each(entries: readonly Entry[]): Promise<Appended[]> {
    return Promise.all(
      entries.map(async (entry) => {
        const { subject, data, id, ttl } = entry;
        const ack = await patiently(async () =>
          this.#link.client.publish(subject, data, {
            timeout: attemptMs,
            ...(id === undefined ? {} : { msgID: id }),
            ...(ttl === undefined ? {} : { headers: await this.#headersOf(entry) }),
          }),
        );
        return { position: ack.seq, isDuplicate: ack.duplicate };
      }),
    );
  }

  /** All or none. */
  async #atomic(entries: readonly Entry[], messages: number): Promise<Appended[]> {
    await this.#enter();
    try {
      const last = await patiently(() => this.#commit(entries));
      const first = last - entries.length + 1;
      return entries
        .slice(0, messages)
        .map((_, at) => ({ position: first + at, isDuplicate: false }));
    } catch (error) {
      // Some of it is there from an earlier attempt, which was all or none: the rest is, too, or is written now.
      if (!(error instanceof DuplicateError)) throw error;
      return (await this.#each(entries)).slice(0, messages);
    } finally {
      this.#leave();
    }
  }

  async #commit(entries: readonly Entry[]): Promise<number> {
    const { connection } = this.#link;
    const batch = randomBytes(12).toString("hex");
    const all = await Promise.all(entries.map((entry) => this.#headersOf(entry)));
    const headersOf = ({ id }: Entry, at: number) => {
      const own = all[at] ?? headers();
      if (id !== undefined) own.set("Nats-Msg-Id", id);
      own.set("Nats-Batch-Id", batch);
      own.set("Nats-Batch-Sequence", String(at + 1));
      return own;
    };
    const rest = entries.slice(0, -1);
    const end = entries[entries.length - 1];
    if (!end) return 0;
    rest.forEach((entry, at) =>
      connection.publish(entry.subject, entry.data, { headers: headersOf(entry, at) }),
    );
    const commit = headersOf(end, rest.length);
    commit.set("Nats-Batch-Commit", "1");
    const reply = await connection.request(end.subject, end.data, {
      headers: commit,
      timeout: attemptMs,
    });
    const { error, seq = 0 } = reply.json<{ error?: ApiError; seq?: number }>();
    if (error) throw new JetStreamApiError(error);
    return seq;
  }

  /** Looked up for each attempt: a write that replaces a value names the position of that value. */
  async #headersOf({ id, ttl, replaces }: Entry): Promise<MsgHdrs> {
    const own = headers();
    if (ttl !== undefined) own.set("Nats-TTL", ttl);
    // The latest value of a record replaces the earlier ones; the stream's own age does not apply to it.
    if (id === undefined) own.set("Nats-Rollup", "sub");
    if (replaces)
      own.set(
        "Nats-Expected-Last-Subject-Sequence",
        String(await this.#records.replacedBy(replaces)),
      );
    return own;
  }

  async #enter(): Promise<void> {
    if (this.#batches < maxBatches) {
      this.#batches++;
      return;
    }
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  #leave(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#batches--;
  }
}

type ApiError = ConstructorParameters<typeof JetStreamApiError>[0];

interface Entry {
  subject: string;
  data: Uint8Array;
  /** None: it is a record. */
  id: string | undefined;
  /** As `Nats-TTL`; none: the stream's age applies. */
  ttl: string | undefined;
  /** A record that is written only in place of a certain value. */
  replaces: RecordWrite | undefined;
}

class DuplicateError extends Error {
  override readonly name = "DuplicateError";
}

/** The stream's age counts from the acceptance: what is not to be handed out for days is kept for so much longer. */
function lifeOf({ notBefore = 0 }: NewMessage): string | undefined {
  const seconds = Math.ceil((notBefore - Date.now()) / 1_000);
  return seconds < delayedFromSeconds ? undefined : `${seconds + delayedLifeSeconds}s`;
}

function recordEntry(record: RecordWrite, names: Names): Entry {
  const { bucket, key, value, expiresAt } = record;
  const seconds =
    expiresAt === undefined ? 0 : Math.max(1, Math.ceil((expiresAt - Date.now()) / 1_000));
  return {
    subject: names.record(bucket, key),
    data: Buffer.from(JSON.stringify({ value, expiresAt })),
    id: undefined,
    ttl: expiresAt === undefined ? "never" : `${seconds}s`,
    replaces: record.replaces === undefined ? undefined : record,
  };
}

/** Repeats what has failed for a reason that passes: an election, a lost connection. */
export async function patiently<T>(work: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof RecordChangedError) throw error;
      const code = error instanceof JetStreamApiError ? error.code : undefined;
      if (code === codes.duplicateInBatch) throw new DuplicateError(messageOf(error));
      const isFull = code !== undefined && fullCodes.has(code);
      if (isFull && /maximum bytes|resource|no space/i.test(messageOf(error)))
        throw new QueueFullError(`the queue is full: ${messageOf(error)}`);
      if (performance.now() >= deadline)
        throw new QueueUnavailableError(`the NATS servers have not answered: ${messageOf(error)}`);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }
}
