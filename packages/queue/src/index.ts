/** A durable queue: one interface, and what keeps it. */
export {
  type Appended,
  type Consumer,
  type ConsumerOptions,
  type ConsumerState,
  type DeadLetter,
  defaultLimits,
  type Delivery,
  maxPageBytes,
  type Message,
  type NewMessage,
  type Queue,
  type QueueLimits,
  type QueueState,
  type RecordWrite,
  type ReplayFrom,
  type StoredRecord,
  type TryOptions,
  type Verdict,
} from "./queue.ts";
export { QueueFullError, QueueUnavailableError, RecordChangedError } from "./errors.ts";
export { type Condition, type Filter, matches } from "./filter.ts";
export {
  type JetStreamQueueOptions,
  openJetStreamQueue,
} from "./jetstream/open-jetstream-queue.ts";
export { openSqliteQueue, type SqliteQueueOptions } from "./sqlite/open-sqlite-queue.ts";
