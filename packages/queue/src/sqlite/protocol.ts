/** What the thread of the database is asked for, and what it answers. */
import { type Verdict } from "../queue.ts";

export type Operation =
  | { op: "append"; messages: WireMessage[]; records: WireRecord[] }
  | { op: "consumer"; name: string; options: WireOptions }
  | { op: "find"; name: string }
  | { op: "removeConsumer"; name: string }
  | { op: "consumerNames" }
  | { op: "next"; consumer: number; max: number }
  | { op: "cancelNext"; consumer: number }
  | { op: "ack"; consumer: number; position: number }
  | { op: "retry"; consumer: number; position: number; afterMs: number; counts: boolean }
  | { op: "bury"; consumer: number; position: number; why: Verdict; counts: boolean }
  | { op: "consumerState"; consumer: number }
  | {
      op: "replay";
      consumer: number;
      position?: number;
      time?: number;
      beforeCreation?: boolean;
    }
  | { op: "deadLetters"; consumer: number; after: number; limit: number }
  | { op: "redrive"; consumer: number; ids: readonly number[] | "all" }
  | { op: "discard"; consumer: number; ids: readonly number[] | "all" }
  | { op: "read"; after: number; limit: number }
  | { op: "head" }
  | { op: "state" }
  | { op: "remove"; bucket: string; key: string }
  | { op: "get"; bucket: string; key: string }
  | { op: "list"; bucket: string; after: string; limit: number }
  | { op: "close" };

export interface WireMessage {
  subject: string;
  key: string;
  attributes: string;
  body: Uint8Array;
  notBefore: number | undefined;
}

export interface WireRecord {
  bucket: string;
  key: string;
  value: string;
  expiresAt: number | undefined;
  replaces?: string | undefined;
}

export interface WireOptions {
  subjects: readonly string[] | "all";
  /** JSON of the filter; structured clones of deep objects are slower. */
  filter: string | undefined;
  orderBy: string | undefined;
  deadlineMs?: number | undefined;
  from: "now" | "start";
  owner: string | undefined;
}

export interface WireStored extends WireMessage {
  position: number;
  at: number;
}

export interface WireDelivery extends WireStored {
  attempt: number;
  failures: number;
  firstAt: number;
}

/** `id` is 0 where no answer is expected. */
export type Request = Operation & { id: number };

export type Reply =
  | { id: number; value: unknown }
  | { id: number; error: string; kind: "full" | "changed" | "unavailable" | "other" };

/** Of a reply that answers nothing: something to be logged. */
export const troubleId = -1;
