import { createHash, randomBytes } from "node:crypto";
import { type Clock } from "@spry/kube";
import { type NewMessage, type Queue } from "@spry/queue";
import {
  type Call,
  callBounds,
  callBucket,
  type CallOptions,
  callSubject,
  deadlineSubject,
  keyBucket,
} from "./call.ts";

export interface Submission {
  namespace: string;
  name: string;
  method: string;
  path: string;
  /** Names and values by turns. */
  headers: readonly string[];
  body: Buffer;
  options: CallOptions;
  delayMs?: number;
  /** After it is due; then it ends if it has not been handled. A day where this is missing. */
  deadlineMs?: number;
  idempotencyKey?: string;
  schedule?: { name: string; dueAt: string };
}

const dayMs = 86_400_000;

/** Sorts by time, and cannot be guessed: a client that knows it may read the result. */
export const newCallId = (clock: Clock): string =>
  `${clock.now().toString(36).padStart(9, "0")}-${randomBytes(16).toString("hex")}`;

/** Accepts calls; a call with the key of an earlier one is a duplicate and gets its id. */
export class CallSubmitter {
  readonly #clock: Clock;
  /** Submissions with a key happen one after the other. */
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves with the call's id once it is durable. */
  async submit(queue: Queue, submission: Submission): Promise<string> {
    const { namespace, name, idempotencyKey } = submission;
    if (idempotencyKey === undefined) return this.#append(queue, submission);
    const digest = createHash("sha256").update(`${name}\n${idempotencyKey}`).digest("hex");
    const turn = `${namespace}/${digest}`;
    const before = this.#turns.get(turn) ?? Promise.resolve();
    const mine = before
      .catch(() => {})
      .then(async () => {
        const known = await queue.get(keyBucket(namespace), digest);
        return known ?? (await this.#append(queue, submission, digest));
      });
    this.#turns.set(turn, mine);
    try {
      return await mine;
    } finally {
      if (this.#turns.get(turn) === mine) this.#turns.delete(turn);
    }
  }

  async #append(queue: Queue, submission: Submission, digest?: string): Promise<string> {
    const { namespace, name, method, path, headers, body, options, delayMs = 0 } = submission;
    const { idempotencyKey, schedule, deadlineMs } = submission;
    const now = this.#clock.now();
    const id = newCallId(this.#clock);
    const notBefore = delayMs > 0 ? now + delayMs : undefined;
    const deadline = deadlineMs === undefined ? undefined : now + delayMs + deadlineMs;
    const call: Call = {
      id,
      function: name,
      method,
      path,
      state: "waiting",
      acceptedAt: new Date(now).toISOString(),
      ...(notBefore === undefined ? {} : { notBefore: new Date(notBefore).toISOString() }),
      ...(deadline === undefined ? {} : { deadlineAt: new Date(deadline).toISOString() }),
      attempts: 0,
      ...(schedule && { schedule }),
      ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    };
    const key = `${namespace}/${name}`;
    const message: NewMessage = {
      subject: callSubject(key),
      key: `call\n${id}`,
      attributes: {
        id,
        method,
        path,
        headers: JSON.stringify(headers),
        options: JSON.stringify(options),
      },
      body,
      notBefore,
    };
    const messages = [message];
    if (deadline !== undefined)
      messages.push({
        subject: deadlineSubject,
        key: `deadline\n${id}`,
        attributes: { namespace, id, options: JSON.stringify(options) },
        body: Buffer.alloc(0),
        notBefore: deadline,
      });
    const expiresAt = now + delayMs + callBounds.retentionSeconds * 1_000 + options.retentionMs;
    const records = [
      { bucket: callBucket(namespace), key: id, value: JSON.stringify(call), expiresAt },
    ];
    if (digest !== undefined)
      records.push({
        bucket: keyBucket(namespace),
        key: digest,
        value: id,
        // As long as the call may wait, at least.
        expiresAt: now + delayMs + (deadlineMs ?? dayMs) + options.retentionMs,
      });
    await queue.append(messages, records);
    return id;
  }
}
