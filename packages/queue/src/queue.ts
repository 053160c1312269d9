import { type Filter } from "./filter.ts";

/** What is to be kept until every consumer whose subjects name it has acknowledged it. */
export interface NewMessage {
  /** What consumers choose by: up to 1,024 characters. */
  subject: string;
  /** A second message with this key, within the queue's window, is the first one again. Up to 1,024 characters. */
  key: string;
  /** Small texts that filters and orders look at. */
  attributes: Readonly<Record<string, string>>;
  body: Uint8Array;
  /** Milliseconds since the epoch; no consumer gets it before. */
  notBefore?: number | undefined;
}

export interface Message extends NewMessage {
  /** Grows with each message; never 0. */
  readonly position: number;
  /** When it was accepted, milliseconds since the epoch. */
  readonly at: number;
}

export interface Appended {
  position: number;
  /** It was there already: nothing has been added. */
  isDuplicate: boolean;
}

export interface ConsumerOptions {
  /** Exact subjects, at most 1,000; `all`: every message. */
  subjects: readonly string[] | "all";
  filter?: Filter | undefined;
  /** Messages with the same value of this attribute are handed out one after the other, in the order of their acceptance. */
  orderBy?: string | undefined;
  /**
   * What it has not handled so long after it could be handed out becomes its dead letter: within seconds, or with JetStream when it is
   * handed out the next time.
   */
  deadlineMs?: number | undefined;
  /** Where a consumer that is new begins; what it has begun, it continues. */
  from?: "now" | "start";
  /** Who shares space and memory with its other consumers, so that others keep theirs; by default the consumer is alone. */
  owner?: string | undefined;
}

/** One message, given to one consumer. Exactly one of `ack`, `retry` and `bury` is called. */
export interface Delivery {
  readonly message: Message;
  /** How often it has been handed out: 1 at the first time. It counts those that a crash has cut off, too. */
  readonly attempt: number;
  /** Of the times before, those that came back by a `retry` that counts; also after a crash. */
  readonly failures: number;
  /** When this consumer was first given it, milliseconds since the epoch; after a crash perhaps when it was accepted. */
  readonly firstAt: number;
  /** It has been handled: this consumer never gets it again, except after a crash before the queue has noted that. */
  ack(): void;
  /** It is handed out again; `counts: false` where this try says nothing about the message, nor about who was to get it. */
  retry(afterMs: number, options?: TryOptions): void;
  /** To the consumer's dead letters. */
  bury(why: Verdict, options?: TryOptions): void;
}

export interface TryOptions {
  /** Whether this try is one of the message's failures; true by default. */
  counts?: boolean;
}

/** Why a message became a dead letter. */
export interface Verdict {
  /** UpperCamelCase, for machines. */
  reason: string;
  /** A sentence; at most 4 KiB are kept. */
  message: string;
}

export interface DeadLetter extends Verdict {
  /** Of this dead letter. */
  id: number;
  /** Tries that counted. */
  attempts: number;
  /** When it became one. */
  buriedAt: number;
  event: Message;
}

/**
 * A place from which messages are read again; not before the consumer's own creation, unless that is asked for: by then it had no
 * right to them.
 */
export type ReplayFrom = ({ position: number } | { time: number }) & { beforeCreation?: boolean };

/** What one page of messages, dead letters or records comes to: one that has reached it ends, whatever its limit. */
export const maxPageBytes = 4 * 1024 ** 2;

export interface ConsumerState {
  /** Neither acknowledged nor dead; counted up to a million. */
  waiting: number;
  /** Of these, handed out at present. */
  inFlight: number;
  /** Of these, those that wait for their next attempt. */
  retrying: number;
  dead: number;
  /** Dead letters that have been removed to make room, since the queue was opened. */
  dropped?: number;
  /** When the oldest of those waiting was accepted. */
  oldestAt?: number | undefined;
}

export interface Consumer {
  readonly name: string;
  /** Resolves with 1 to `max` messages, when there are any; with none after `signal`. One call at a time. */
  next(max: number, signal: AbortSignal): Promise<Delivery[]>;
  state(): Promise<ConsumerState>;
  /** Hands out again, in order, what is still kept from that place on. */
  replay(from: ReplayFrom): Promise<void>;
  /** In the order of their ids, after `after`; at most a page. */
  deadLetters(page: { after?: number; limit: number }): Promise<DeadLetter[]>;
  deadLetter(id: number): Promise<DeadLetter | undefined>;
  /** Dead letters become messages of this consumer again, with no attempts; returns how many there were. */
  redrive(ids: readonly number[] | "all"): Promise<number>;
  discard(ids: readonly number[] | "all"): Promise<number>;
}

/** A small text of the queue's user, kept with the same durability as messages. */
export interface StoredRecord {
  bucket: string;
  key: string;
  value: string;
  /** Milliseconds since the epoch; then it is removed. */
  expiresAt?: number | undefined;
}

export interface RecordWrite extends StoredRecord {
  /** The value that it must still have: of two writers that have read the same one, the second fails. */
  replaces?: string | undefined;
}

export interface QueueState {
  /** Kept, delivered ones included. */
  messages: number;
  bytes: number;
  maxBytes: number;
}

/** Messages on disk, or in a cluster of servers, until they have been handled. */
export interface Queue {
  /**
   * Resolves when they are durable. Messages with records are, all or none; after a failure of messages alone, some of them may be
   * there: with the same keys, a repeat adds the others.
   * @throws RecordChangedError when a record does not have the value that it is to replace
   * @throws QueueFullError when it may not hold more
   * @throws QueueUnavailableError when that cannot be known at present
   */
  append(messages: readonly NewMessage[], records?: readonly RecordWrite[]): Promise<Appended[]>;
  /** The consumer of this name, which is created where it is new, and otherwise changed. */
  consumer(name: string, options: ConsumerOptions): Promise<Consumer>;
  /** The consumer of this name, if there is one. */
  find(name: string): Promise<Consumer | undefined>;
  /** With everything that it has not been given yet; its dead letters as well. */
  removeConsumer(name: string): Promise<void>;
  consumerNames(): Promise<string[]>;
  /** Messages after that position, at most so many, and at most a page; oldest first. */
  read(page: { after: number; limit: number }): Promise<Message[]>;
  /** The last position so far; 0 without any. */
  head(): Promise<number>;
  state(): Promise<QueueState>;
  /** @throws RecordChangedError when it does not have the value that it is to replace */
  put(record: RecordWrite): Promise<void>;
  get(bucket: string, key: string): Promise<string | undefined>;
  remove(bucket: string, key: string): Promise<void>;
  /** By key, after `after`; at most a page. */
  list(bucket: string, page: { after?: string; limit: number }): Promise<StoredRecord[]>;
  /** What was acknowledged is noted; messages that are handed out become those of the next start. */
  close(): Promise<void>;
}

export interface QueueLimits {
  /** Of everything on disk but dead letters. When it becomes tight, the owner with the largest backlog loses first. */
  maxBytes: number;
  /** Of dead letters; beyond it, the owner with the most loses its oldest. */
  maxDeadBytes: number;
  /** Of messages that are handed out at a time; an owner gets no more of it than is left for others. */
  maxLeasedBytes: number;
  /** Messages older than this are removed; those that a consumer has not handled become its dead letters. */
  maxAgeMs: number;
  /** Within which a key is known. */
  duplicatesMs: number;
  /** Messages that may wait for earlier ones of their order, per consumer; then it gets nothing new. */
  maxHeld: number;
}

export const defaultLimits: QueueLimits = {
  maxBytes: 1024 ** 3,
  maxDeadBytes: 256 * 1024 ** 2,
  maxLeasedBytes: 64 * 1024 ** 2,
  maxAgeMs: 7 * 24 * 3_600_000,
  duplicatesMs: 120_000,
  maxHeld: 10_000,
};
