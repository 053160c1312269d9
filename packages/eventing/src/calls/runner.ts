import { type DeliveryResult, postOutside } from "@spry/gateway";
import { type Clock, type Logger, messageOf, type ObjectKey, sleep } from "@spry/kube";
import {
  type Consumer,
  type Delivery,
  type NewMessage,
  type Queue,
  RecordChangedError,
} from "@spry/queue";
import { type Deliver } from "../dispatcher/subscription-worker.ts";
import {
  type Call,
  callBounds,
  callbackConsumer,
  callbackSubject,
  callBucket,
  type CallOptions,
  type CallResponse,
  callsConsumerPrefix,
  consumerOfCalls,
  hasEnded,
} from "./call.ts";
import { cancelCall } from "./cancel.ts";
import { serviceOf } from "./read-request.ts";
import { type NamespaceClaims } from "./namespace-claims.ts";

export interface RunnerDeps {
  queue: Queue;
  deliver: Deliver;
  claims: NamespaceClaims;
  /** Whether results may be sent to this machine and its private networks, if a program of this machine asks for it. */
  allowPrivate: boolean;
  /** Why an address that a client has named is not one outside the cluster. */
  addressProblem?: (address: string) => string | undefined;
  /** Other processes accept calls, too: for which Functions is looked up again and again. */
  othersAccept?: boolean;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
}

const othersMs = 3_000;
const retryMs = 1_000;
const maxBackoffMs = 60_000;
const callbackAttempts = 8;
const callbackTimeoutMs = 30_000;
const maxCallbacks = 20;

/** A Function without calls for so long is not listened for any more, until there is one. */
const idleMs = 600_000;

/** What takes the calls of one Function. */
interface Loop {
  consumer: Promise<Consumer>;
  stop: AbortController;
  /** When a call was last accepted. */
  usedAt: number;
}

/** Makes the waiting calls, those of each Function independently, and sends the results to the URLs that the clients specified. */
export class CallRunner {
  readonly #deps: RunnerDeps;
  readonly #loops = new Map<ObjectKey, Loop>();
  /** By Function, until it has ended: a consumer has one loop at a time. */
  readonly #taking = new Map<ObjectKey, Promise<unknown>>();
  readonly #running = new Map<string, AbortController>();

  constructor(deps: RunnerDeps) {
    this.#deps = deps;
  }

  /** Continues with what was accepted before; resolves when the signal is aborted and calls under way have ended. */
  async run(): Promise<void> {
    const { queue, clock, signal, othersAccept = false } = this.#deps;
    await this.#ensureAll();
    const callbacks = await queue.consumer(callbackConsumer, {
      subjects: [callbackSubject],
      from: "start",
    });
    const callBack = (delivery: Delivery) => this.#callBack(delivery);
    const loop = this.#take(callbacks, maxCallbacks, callBack, signal);
    while (!signal.aborted) {
      await sleep(clock, othersMs, signal);
      if (signal.aborted) break;
      if (othersAccept) await this.#ensureAll().catch(() => {});
      else await this.#endIdle().catch(() => {});
    }
    await Promise.allSettled([loop, ...this.#taking.values()]);
  }

  /** For how many Functions calls are taken. */
  get size(): number {
    return this.#loops.size;
  }

  /** What accepts a call has asked for the loop a moment before: none is ended between the two. */
  async #endIdle(): Promise<void> {
    const isIdle = ({ usedAt }: Loop) => this.#deps.clock.now() - usedAt >= idleMs;
    for (const [key, loop] of this.#loops) {
      if (!isIdle(loop)) continue;
      const { waiting } = await (await loop.consumer).state();
      if (waiting > 0 || !isIdle(loop)) continue;
      this.#loops.delete(key);
      loop.stop.abort();
    }
  }

  async #ensureAll(): Promise<void> {
    for (const name of await this.#deps.queue.consumerNames()) {
      if (name.startsWith(callsConsumerPrefix))
        await this.ensure(name.slice(callsConsumerPrefix.length));
    }
  }

  /** Calls of this Function are made from now on. */
  async ensure(key: ObjectKey): Promise<void> {
    const { queue, clock, signal } = this.#deps;
    const known = this.#loops.get(key);
    if (known) {
      known.usedAt = clock.now();
      await known.consumer;
      return;
    }
    const before = this.#taking.get(key) ?? Promise.resolve();
    const consumer = before.then(() => queue.consumer(...consumerOfCalls(key)));
    const stop = new AbortController();
    this.#loops.set(key, { consumer, stop, usedAt: clock.now() });
    try {
      const ready = await consumer;
      const until = AbortSignal.any([signal, stop.signal]);
      const call = (each: Delivery) => this.#call(key, each);
      const taking = this.#take(ready, callBounds.inFlightOfFunction, call, until);
      this.#taking.set(key, taking);
      void taking.finally(() => {
        if (this.#taking.get(key) === taking) this.#taking.delete(key);
      });
    } catch (error) {
      this.#loops.delete(key);
      throw error;
    }
  }

  /** Whether there was anything to cancel. */
  async cancel(namespace: string, id: string): Promise<boolean> {
    const { queue, clock } = this.#deps;
    const isCancelled = await cancelCall(queue, clock, { namespace, id });
    if (isCancelled) this.#running.get(id)?.abort();
    return isCancelled;
  }

  async #take(
    consumer: Consumer,
    max: number,
    handle: (delivery: Delivery) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const { clock, log } = this.#deps;
    const active = new Set<Promise<void>>();
    while (!signal.aborted) {
      try {
        if (active.size >= max) {
          await Promise.race(active);
          continue;
        }
        for (const delivery of await consumer.next(max - active.size, signal)) {
          const handled: Promise<void> = handle(delivery)
            .catch((error: unknown) => {
              // Cancelled meanwhile, which the next look at it shows; or another process has made it.
              if (error instanceof RecordChangedError) return delivery.retry(0);
              log.warn(
                { consumer: consumer.name, error: messageOf(error) },
                "making a call, trying again",
              );
              delivery.retry(retryMs);
            })
            .finally(() => active.delete(handled));
          active.add(handled);
        }
      } catch (error) {
        if (signal.aborted) break;
        log.warn(
          { consumer: consumer.name, error: messageOf(error) },
          "taking calls, trying again",
        );
        await sleep(clock, retryMs, signal);
      }
    }
    await Promise.allSettled(active);
  }

  async #call(key: ObjectKey, delivery: Delivery): Promise<void> {
    const { deliver, clock } = this.#deps;
    const [namespace = "", name = ""] = key.split("/");
    const { attributes, body } = delivery.message;
    const { id = "", method = "POST", path = "/" } = attributes;
    const options = JSON.parse(attributes["options"] ?? "{}") as CallOptions;
    const uid = await this.#deps.claims.uidOf(this.#deps.queue, namespace);
    const kept = await this.#read(namespace, id);
    const call = kept === undefined ? undefined : (JSON.parse(kept) as Call);
    if (kept === undefined || !call || hasEnded(call)) return delivery.ack();
    const begun: Call = {
      ...call,
      state: "running",
      startedAt: call.startedAt ?? new Date(clock.now()).toISOString(),
      attempts: delivery.attempt,
    };
    const beginning = this.#record(namespace, begun, options.retentionMs);
    await this.#deps.queue.put({ ...beginning, replaces: kept });
    // Only its cancellation changes it from here on, in this or another process: that counts, then.
    const replaces = beginning.value;
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
    }).finally(() => this.#running.delete(id));
    const seen = { ...begun, ...outcomeOf(result) };
    const isOver = !mayBeRetried(result) || delivery.attempt > options.retries;
    if (!isOver) {
      const waiting = this.#record(namespace, { ...seen, state: "waiting" }, options.retentionMs);
      await this.#deps.queue.put({ ...waiting, replaces });
      return delivery.retry(Math.min(retryMs * 2 ** (delivery.attempt - 1), maxBackoffMs));
    }
    const isGood = "status" in result && result.status < 400;
    const ended = this.#finished(seen, isGood ? "succeeded" : "failed");
    const messages = callbacksOf(ended, { namespace, uid }, options, result);
    const end = this.#record(namespace, ended, options.retentionMs);
    await this.#deps.queue.append(messages, [{ ...end, replaces }]);
    delivery.ack();
  }

  async #callBack(delivery: Delivery): Promise<void> {
    const { attributes, body } = delivery.message;
    const { url = "", namespace = "", headers: kept = "{}" } = attributes;
    const { uid } = attributes;
    // The result is not for another namespace of this name.
    if (uid !== undefined && uid !== (await this.#deps.claims.uidOf(this.#deps.queue, namespace)))
      return delivery.ack();
    const headers = JSON.parse(kept) as Record<string, string>;
    const target = new URL(url);
    const name = serviceOf(target)?.name;
    const bytes = Buffer.from(body);
    const result =
      name === undefined
        ? await postOutside({
            url,
            headers,
            body: bytes,
            timeoutMs: callbackTimeoutMs,
            allowPrivate: this.#deps.allowPrivate && attributes["ofmachine"] === "true",
            addressProblem: this.#deps.addressProblem,
          })
        : await this.#deps.deliver({
            namespace,
            name,
            port: target.port === "" ? 80 : Number(target.port),
            method: "POST",
            path: `${target.pathname}${target.search}`,
            headers: Object.entries(headers).flat(),
            body: bytes,
            timeoutMs: callbackTimeoutMs,
            maxResponseBytes: 1_024,
          });
    if ("status" in result && result.status < 300) return delivery.ack();
    const why =
      "status" in result ? `HTTP ${result.status}` : `${result.reason}: ${result.message}`;
    if (delivery.attempt < callbackAttempts)
      return delivery.retry(Math.min(retryMs * 2 ** delivery.attempt, maxBackoffMs));
    this.#deps.log.warn({ call: headers["x-call-id"], why }, "a call's result could not be sent");
    return delivery.bury({ reason: "CallbackFailed", message: why });
  }

  #read(namespace: string, id: string): Promise<string | undefined> {
    return this.#deps.queue.get(callBucket(namespace), id);
  }

  #record(namespace: string, call: Call, retentionMs: number) {
    const sinceMs = hasEnded(call) ? 0 : callBounds.retentionSeconds * 1_000;
    const expiresAt = this.#deps.clock.now() + sinceMs + retentionMs;
    return { bucket: callBucket(namespace), key: call.id, value: JSON.stringify(call), expiresAt };
  }

  #finished(call: Call, state: Call["state"]): Call {
    return { ...call, state, endedAt: new Date(this.#deps.clock.now()).toISOString() };
  }
}

/** No response, or one that says that the request was not handled, or failed. */
function mayBeRetried(result: DeliveryResult): boolean {
  return !("status" in result) || result.status >= 500 || result.status === 429;
}

function outcomeOf(result: DeliveryResult): Pick<Call, "response" | "error"> {
  if (!("status" in result)) return { error: `${result.reason}: ${result.message}` };
  const { status, headers, body, isCut } = result;
  const text = body.toString("utf8");
  const isText = Buffer.from(text).equals(body);
  const kept: CallResponse = {
    status,
    headers: Object.fromEntries(
      Object.entries(headers).filter(([name]) => /^(?:content-|x-|location$|ce-)/.test(name)),
    ),
    ...(isText ? { body: text } : { bodyBase64: body.toString("base64") }),
    ...(isCut ? { isCut } : {}),
  };
  return { response: kept };
}

/** As OpenFaaS sends them. */
function callbacksOf(
  call: Call,
  { namespace, uid }: { namespace: string; uid: string | undefined },
  { callbackUrl, onSuccess, onFailure, isOfMachine = false }: CallOptions,
  result: DeliveryResult,
): NewMessage[] {
  const urls = [callbackUrl, call.state === "succeeded" ? onSuccess : onFailure];
  const status = "status" in result ? result.status : 502;
  const seconds = (Date.parse(call.endedAt ?? "") - Date.parse(call.startedAt ?? "")) / 1_000;
  const headers = {
    "content-type":
      ("status" in result ? result.headers["content-type"] : undefined) ?? "text/plain",
    "x-call-id": `${namespace}.${call.id}`,
    "x-function-name": call.function,
    "x-function-status": String(status),
    "x-duration-seconds": String(seconds),
    "user-agent": "spry-eventing",
  };
  return urls.flatMap((url, index) =>
    url === undefined
      ? []
      : {
          subject: callbackSubject,
          key: `callback\n${call.id}\n${index}`,
          attributes: {
            url,
            namespace,
            ...(uid === undefined ? {} : { uid }),
            headers: JSON.stringify(headers),
            ofmachine: String(isOfMachine),
          },
          body: "status" in result ? result.body : Buffer.from(result.message),
        },
  );
}
