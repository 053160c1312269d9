import { hasReached } from "@spry/gateway";
import { messageOf, type ObjectKey, sleep } from "@spry/kube";
import { type Delivery, RecordChangedError } from "@spry/queue";
import { type Reach } from "../reach.ts";
import { type Call, callBounds, callBucket, type CallOptions, hasEnded } from "./call.ts";
import { apiProblem, type FunctionLooks, type Wait } from "./function-looks.ts";
import {
  callbacksOf,
  deadlineOf,
  errorOf,
  mayBeRetried,
  outcomeOf,
  overdue,
  withoutOutcome,
} from "./outcome.ts";
import { type RunnerDeps } from "./runner.ts";
import { Waits } from "./waits.ts";

const retryMs = 1_000;
const maxBackoffMs = 60_000;
/** A call's deadline is looked at again after this, while the call is under way. */
const underWayMs = 2_000;

/** A call, as it was read: its record is written by what has read it last. */
interface Read {
  namespace: string;
  call: Call;
  /** The record's text. */
  kept: string;
  options: CallOptions;
}

/**
 * Makes one call at a time that is handed to it, and writes down what became of it. A try that has not reached the Function uses up none of
 * the call's retries: it ends by time.
 */
export class CallMaker {
  readonly #deps: RunnerDeps;
  readonly #looks: FunctionLooks;
  readonly #waits: Waits;
  readonly #running = new Map<string, AbortController>();

  constructor(deps: RunnerDeps, looks: FunctionLooks) {
    this.#deps = deps;
    this.#looks = looks;
    this.#waits = new Waits(deps.queue, deps.clock);
  }

  /** Cuts the request short, if it is under way in this process. */
  abort(id: string): void {
    this.#running.get(id)?.abort();
  }

  /** Its Function is not listened for any more. */
  forget(key: ObjectKey): void {
    this.#waits.forget(key);
  }

  async make(key: ObjectKey, delivery: Delivery, reach: Reach): Promise<void> {
    const { queue, deliver, claims, clock } = this.#deps;
    const [namespace = "", name = ""] = key.split("/");
    const { attributes, body } = delivery.message;
    const { id = "", method = "POST", path = "/" } = attributes;
    // Before the record is read: what is an earlier namespace's is removed by it.
    const identity = await claims.uidOf(queue, namespace).then(
      (uid) => ({ uid }),
      (error: unknown) => ({
        problem: { reason: "ApiServerUnreachable", message: apiProblem(error) },
      }),
    );
    const read = await this.#read(namespace, id, attributes["options"]);
    if (!read) return delivery.ack();
    const { call, options } = read;
    if (clock.now() >= deadlineOf(call)) {
      await this.#end(read, overdue(call));
      return delivery.ack();
    }
    if ("problem" in identity) {
      await this.#waits.note(key, identity.problem);
      return delivery.retry(reach.missed(), { counts: false });
    }
    const startedAt = call.startedAt ?? new Date(clock.now()).toISOString();
    const begun: Read = await this.#write(read, { ...call, state: "running", startedAt });
    // Only its cancellation changes it from here on, in this or another process: that counts, then.
    const abort = new AbortController();
    this.#running.set(id, abort);
    const result = await deliver({
      namespace,
      name,
      port: 80,
      method,
      path,
      headers: [...(JSON.parse(attributes["headers"] ?? "[]") as string[]), "x-call-id", id],
      body: Buffer.from(body),
      timeoutMs: callBounds.timeoutMs,
      maxResponseBytes: callBounds.resultBytes,
      signal: abort.signal,
      onSent: () => this.#isThere(key, reach),
    }).finally(() => this.#running.delete(id));
    if (!hasReached(result) && !("status" in result))
      return this.#missed(key, delivery, begun, call, result, reach);
    this.#isThere(key, reach);
    const attempts = call.attempts + 1;
    const seen: Call = { ...withoutOutcome(begun.call), attempts, ...outcomeOf(result) };
    if (mayBeRetried(result) && attempts <= options.retries) {
      await this.#insist(() => this.#write(begun, { ...seen, state: "waiting" }));
      return delivery.retry(Math.min(retryMs * 2 ** (attempts - 1), maxBackoffMs));
    }
    const isGood = "status" in result && result.status < 400;
    const ended = this.#ended(seen, isGood ? "succeeded" : "failed");
    const messages = callbacksOf(ended, { namespace, uid: identity.uid }, options, result);
    await this.#insist(() => this.#write(begun, ended, messages));
    return delivery.ack();
  }

  /** A call that still waits at its deadline ends, also where it is not its turn to be sent. */
  async end({ namespace = "", id = "", options }: Record<string, string>, delivery: Delivery) {
    const read = await this.#read(namespace, id, options);
    if (!read) return delivery.ack();
    const { call } = read;
    // A run that has been started has kept its deadline.
    if (call.schedule && call.attempts > 0) return delivery.ack();
    if (call.state === "running") return delivery.retry(underWayMs, { counts: false });
    await this.#end(read, overdue(call, await this.#waits.read(namespace, call.function)));
    return delivery.ack();
  }

  /** The queue has given up the message of a call: it will never be made. */
  async giveUp(namespace: string, attributes: Readonly<Record<string, string>>, why: Wait) {
    const read = await this.#read(namespace, attributes["id"] ?? "", attributes["options"]);
    if (read) await this.#end(read, why);
  }

  #isThere(key: ObjectKey, reach: Reach): void {
    reach.reached();
    this.#waits.clear(key).catch(() => {});
  }

  /** `call`: as it was before this try. */
  async #missed(
    key: ObjectKey,
    delivery: Delivery,
    begun: Read,
    call: Call,
    result: Wait,
    reach: Reach,
  ): Promise<void> {
    if (this.#deps.signal.aborted) {
      // Nothing is known of the Function: it is this process that ends.
      await this.#write(begun, { ...call, state: "waiting" });
      return delivery.retry(0, { counts: false });
    }
    const { isMissing, wait = result } = await this.#looks.look(key);
    if (isMissing) {
      const message = `Function ${key} does not exist`;
      await this.#insist(() => this.#end(begun, { reason: "FunctionNotFound", message }));
      return delivery.ack();
    }
    // The API server's absence says nothing about a Function that was looked for without it.
    const known = wait.reason === "ApiServerUnreachable" ? result : wait;
    await this.#insist(() => this.#write(begun, { ...call, ...errorOf(known), state: "waiting" }));
    const pauseMs = reach.missed();
    await this.#waits.note(key, known).catch(() => {});
    return delivery.retry(pauseMs, { counts: false });
  }

  async #end(read: Read, why: Wait): Promise<void> {
    const { namespace, call, options } = read;
    const ended = this.#ended({ ...withoutOutcome(call), ...errorOf(why) }, "failed");
    // The record is this namespace's: that of another one would have been removed when its uid was learnt.
    const uid = await this.#deps.claims.keptUid(this.#deps.queue, namespace);
    await this.#write(read, ended, callbacksOf(ended, { namespace, uid }, options, why));
  }

  /** Undefined: there is no such call any more, or it has ended. */
  async #read(namespace: string, id: string, options = "{}"): Promise<Read | undefined> {
    const kept = await this.#deps.queue.get(callBucket(namespace), id);
    const call = kept === undefined ? undefined : (JSON.parse(kept) as Call);
    if (kept === undefined || !call || hasEnded(call)) return undefined;
    return { namespace, call, kept, options: JSON.parse(options) as CallOptions };
  }

  /** @throws RecordChangedError when it is not as it was read. */
  async #write(
    read: Read,
    call: Call,
    messages: Parameters<RunnerDeps["queue"]["append"]>[0] = [],
  ): Promise<Read> {
    const { namespace, kept, options } = read;
    const value = JSON.stringify(call);
    const sinceMs = hasEnded(call) ? 0 : callBounds.retentionSeconds * 1_000;
    const expiresAt = this.#deps.clock.now() + sinceMs + options.retentionMs;
    const record = { bucket: callBucket(namespace), key: call.id, value, expiresAt };
    const { queue } = this.#deps;
    if (messages.length === 0) await queue.put({ ...record, replaces: kept });
    else await queue.append(messages, [{ ...record, replaces: kept }]);
    return { ...read, call, kept: value };
  }

  /** What has happened is written down, however long that takes: the call must not be made again for want of room in the queue. */
  async #insist<T>(work: () => Promise<T>): Promise<T> {
    const { clock, log, signal } = this.#deps;
    for (;;) {
      try {
        return await work();
      } catch (error) {
        if (error instanceof RecordChangedError || signal.aborted) throw error;
        log.warn({ error: messageOf(error) }, "noting what became of a call, trying again");
        await sleep(clock, retryMs, signal);
      }
    }
  }

  #ended(call: Call, state: Call["state"]): Call {
    return { ...call, state, endedAt: new Date(this.#deps.clock.now()).toISOString() };
  }
}
