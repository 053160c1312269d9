import {
  DiscardPolicy,
  jetstream,
  JetStreamApiError,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { connect, type NatsConnection, type NodeConnectionOptions } from "@nats-io/transport-node";
import { type Logger, messageOf, silentLogger } from "@spry/kube";
import { QueueUnavailableError } from "../errors.ts";
import { defaultLimits, type Queue, type QueueLimits } from "../queue.ts";
import { JetStreamQueue } from "./jetstream-queue.ts";
import { Names } from "./names.ts";
import { type Link } from "./publishing.ts";

export interface JetStreamQueueOptions {
  /** `nats://host:port`, one or several of a cluster. */
  servers: readonly string[];
  /** Of the streams, and the first part of all subjects: letters, digits and `-`. */
  name?: string;
  /** On how many servers each message is, before it counts as accepted. */
  replicas?: number;
  limits?: Partial<QueueLimits>;
  /** After which the server hands out again what a process had that is gone. */
  ackWaitMs?: number;
  /** TLS and credentials, as the client knows them. */
  connection?: Pick<NodeConnectionOptions, "tls" | "user" | "pass" | "token">;
  log?: Logger;
}

const defaultAckWaitMs = 15_000;
const nanos = 1_000_000;
/** The servers remove nothing before this queue has made a dead letter of it. */
const graceMs = 24 * 3_600_000;
/** Batches that are all or none, ages of single messages. */
const leastVersion = "2.12.0";
const streamNotFound = 10_059;

/**
 * A queue in JetStream.
 * @throws QueueUnavailableError when the servers cannot be reached, are too old, or hold no such stream and refuse to make it
 */
export async function openJetStreamQueue(options: JetStreamQueueOptions): Promise<Queue> {
  const { servers, name = "spry-events", replicas = 1, log = silentLogger } = options;
  const limits = { ...defaultLimits, ...options.limits };
  const where = servers.join(", ");
  let connection: NatsConnection | undefined;
  try {
    connection = await connect({
      ...options.connection,
      servers: [...servers],
      name: "spry-eventing",
      maxReconnectAttempts: -1,
      reconnectTimeWait: 500,
      timeout: 5_000,
    });
    checkVersion(connection);
    const names = new Names(name);
    const manager = await jetstreamManager(connection, { timeout: 5_000 });
    const link: Link = { connection, client: jetstream(connection), manager, names };
    const common = {
      num_replicas: replicas,
      storage: StorageType.File,
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.New,
      allow_direct: true,
    };
    await ensureStream(link, {
      ...common,
      name: names.stream,
      subjects: names.subjects,
      max_bytes: limits.maxBytes,
      max_age: (limits.maxAgeMs + graceMs) * nanos,
      duplicate_window: limits.duplicatesMs * nanos,
      allow_rollup_hdrs: true,
      allow_msg_ttl: true,
      allow_atomic: true,
    });
    // Of dead letters the oldest is lost when there are more than even the queue's upkeep could remove in time.
    await ensureStream(link, {
      ...common,
      name: names.deadStream,
      subjects: [names.deadSubjects],
      max_bytes: 2 * limits.maxDeadBytes,
      discard: DiscardPolicy.Old,
    });
    return new JetStreamQueue(link, limits, options.ackWaitMs ?? defaultAckWaitMs, log);
  } catch (error) {
    await connection?.close();
    if (error instanceof QueueUnavailableError) throw error;
    throw new QueueUnavailableError(
      `the NATS servers ${where} cannot be used: ${messageOf(error)}`,
      {
        cause: error,
      },
    );
  }
}

function checkVersion({ info }: NatsConnection): void {
  const version = info?.version ?? "0";
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [leastMajor = 0, leastMinor = 0] = leastVersion.split(".").map(Number);
  if (major > leastMajor || (major === leastMajor && minor >= leastMinor)) return;
  throw new QueueUnavailableError(
    `the NATS server has version ${version}: ${leastVersion} or newer is needed`,
  );
}

async function ensureStream(
  { manager }: Link,
  config: Partial<StreamConfig> & { name: string },
): Promise<void> {
  try {
    await manager.streams.info(config.name);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== streamNotFound) throw error;
    await manager.streams.add(config);
    return;
  }
  await manager.streams.update(config.name, config);
}
