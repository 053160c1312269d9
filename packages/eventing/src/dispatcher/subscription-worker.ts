import { type DeliveryRequest, type DeliveryResult, hasReached } from "@spry/gateway";
import { type Clock, type Logger, messageOf, type ObjectKey, sleep } from "@spry/kube";
import { type Consumer, type Delivery, type Queue, type TryOptions } from "@spry/queue";
import { bounds } from "../bounds.ts";
import { binaryHeaders } from "../events/http.ts";
import { Reach } from "../reach.ts";
import { eventOf } from "../events/message.ts";
import { type EventingMetrics } from "../metrics.ts";
import { type EventTraces } from "../tracing/event-traces.ts";
import { type Plan } from "../validation/plan.ts";

export type Deliver = (request: DeliveryRequest) => Promise<DeliveryResult>;

export interface WorkerDeps {
  queue: Queue;
  deliver: Deliver;
  metrics: EventingMetrics;
  traces: EventTraces;
  clock: Clock;
  log: Logger;
  /** A delivery failed, or an event became a dead letter. */
  onTrouble: (key: ObjectKey, trouble: Trouble) => void;
}

export interface Trouble {
  reason: "DeliveryFailed" | "DeadLetter" | "DeadLettersDropped" | "LeftInFormerQueue";
  message: string;
}

/** Limits on what is read of a sink's response, and kept with a dead letter. */
const maxResponseBytes = 4 * 1024;
const shownBytes = 500;
const queueRetryMs = 1_000;
/** Handed out to one Subscription at a time; more are taken when they have been handled. */
const maxHeldBytes = 4 * bounds.eventBytes;

/** Takes the events of one Subscription and sends them to its sink; a slow sink delays no other Subscription. */
export class SubscriptionWorker {
  readonly key: ObjectKey;
  readonly #deps: WorkerDeps;
  readonly #stop = new AbortController();
  #plan: Plan;
  #inFlight = 0;
  #heldBytes = 0;
  readonly #reach: Reach;
  #lastMiss = "";
  #freed = () => {};
  readonly #ended: Promise<void>;

  constructor(key: ObjectKey, plan: Plan, deps: WorkerDeps) {
    this.key = key;
    this.#plan = plan;
    this.#deps = deps;
    this.#reach = new Reach(deps.clock);
    this.#ended = this.#run();
  }

  /** Applies from the next event on; other filters need another worker. */
  use(plan: Plan): void {
    this.#plan = plan;
    this.#reach.reached();
    this.#freed();
  }

  /** Takes no more events; deliveries under way are finished, and their results recorded. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#freed();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#deps;
    const { signal } = this.#stop;
    const deliveries = new Set<Promise<void>>();
    let consumer: Consumer | undefined;
    while (!signal.aborted) {
      try {
        consumer ??= await this.#deps.queue.consumer(consumerName(this.key), this.#plan.consumer);
        const free = this.#reach.limit(this.#plan.maxInFlight) - this.#inFlight;
        if (free <= 0 || this.#heldBytes >= maxHeldBytes) {
          await new Promise<void>((resolve) => (this.#freed = resolve));
          continue;
        }
        if (this.#reach.pauseMs > 0) {
          await sleep(clock, this.#reach.pauseMs, signal);
          continue;
        }
        for (const delivery of await consumer.next(free, signal)) {
          this.#inFlight++;
          this.#heldBytes += delivery.message.body.length;
          const handled = this.#guarded(delivery).finally(() => {
            this.#inFlight--;
            this.#heldBytes -= delivery.message.body.length;
            deliveries.delete(handled);
            this.#freed();
          });
          deliveries.add(handled);
        }
      } catch (error) {
        if (signal.aborted) break;
        log.warn(
          { subscription: this.key, error: messageOf(error) },
          "taking events failed, trying again",
        );
        await sleep(clock, queueRetryMs, signal);
      }
    }
    await Promise.allSettled(deliveries);
  }

  /** Never rejects: whatever goes wrong, the event is tried again. */
  async #guarded(delivery: Delivery): Promise<void> {
    try {
      await this.#handle(delivery);
    } catch (error) {
      this.#deps.log.error(
        { subscription: this.key, error: messageOf(error) },
        "delivering an event",
      );
      delivery.retry(this.#plan.maxBackoffMs, { counts: false });
    }
  }

  async #handle(delivery: Delivery): Promise<void> {
    const { clock, metrics } = this.#deps;
    const { message, failures } = delivery;
    const { deadlineMs, maxAttempts } = this.#plan;
    const isLate = deadlineMs !== undefined && clock.now() - message.at > deadlineMs;
    if (isLate) {
      const known = failures === 0 && this.#reach.isAway ? `; at last: ${this.#lastMiss}` : "";
      const why = `not delivered within ${deadlineMs / 1000} s${known}`;
      const reason = failures === 0 ? "NeverReached" : "DeadlineExceeded";
      return this.#bury(delivery, reason, why, { counts: false });
    }
    const result: DeliveryResult = await this.#send(delivery).catch((error: unknown) => ({
      reason: "Unsendable",
      message: messageOf(error),
      wasSent: false,
    }));
    if (!hasReached(result)) {
      this.#lastMiss = describe(result);
      delivery.retry(this.#reach.missed(), { counts: false });
      return this.#failed(delivery, result);
    }
    this.#isThere();
    if (isAccepted(result)) {
      delivery.ack();
      metrics.attempted(this.key, "delivered");
      metrics.delivered(this.key, (clock.now() - message.at) / 1000);
      return undefined;
    }
    const attempt = failures + 1;
    if (attempt >= maxAttempts)
      return this.#bury(
        delivery,
        "AttemptsExhausted",
        `attempt ${attempt} of ${maxAttempts}: ${describe(result)}`,
      );
    delivery.retry(this.#pauseAfter(attempt, result));
    return this.#failed(delivery, result);
  }

  #isThere(): void {
    if (!this.#reach.isAway) return;
    this.#reach.reached();
    this.#freed();
  }

  /** It is tried again. */
  #failed({ message }: Delivery, result: DeliveryResult): void {
    this.#deps.metrics.attempted(this.key, "failed");
    const { id = "", type = "" } = message.attributes;
    this.#deps.onTrouble(this.key, {
      reason: "DeliveryFailed",
      message: `delivering to ${this.#sinkName}: ${describe(result)}; the last event was ${type}, id ${id}`,
    });
  }

  get #sinkName(): string {
    const { name, namespace } = this.#plan.sink;
    return `Service ${namespace}/${name}`;
  }

  #bury(delivery: Delivery, reason: string, message: string, options?: TryOptions): void {
    this.#deps.metrics.attempted(this.key, "dead");
    if (!this.#plan.keepsDeadLetters) return delivery.ack();
    delivery.bury({ reason, message }, options);
    const { id = "", type = "" } = delivery.message.attributes;
    this.#deps.onTrouble(this.key, {
      reason: "DeadLetter",
      message: `event ${type}, id ${id}, became a dead letter: ${message.slice(0, shownBytes)}`,
    });
  }

  async #send({ message, attempt }: Delivery): Promise<DeliveryResult> {
    const { deliver, traces } = this.#deps;
    const { sink, timeoutMs } = this.#plan;
    const { namespace, name, port, path } = sink;
    const span = traces.delivering(message, { subscription: this.key, attempt });
    const { attributes, data } = eventOf(message);
    // The original's backend, which renames events on their way, adds it for the sink.
    const sent = { attributes: { originaltype: attributes["type"] ?? "", ...attributes }, data };
    const result = await deliver({
      namespace,
      name,
      port,
      path,
      method: "POST",
      headers: [...binaryHeaders(sent, span?.traceparent), "user-agent", "spry-eventing"],
      body: Buffer.from(message.body),
      timeoutMs,
      maxResponseBytes,
      onSent: () => this.#isThere(),
    });
    span?.end(isAccepted(result) ? undefined : describe(result).slice(0, shownBytes));
    return result;
  }

  /** Doubled each time, up to a limit, and spread; a sink may ask for a longer pause, within that limit. */
  #pauseAfter(attempt: number, result: DeliveryResult): number {
    const { backoffMs, maxBackoffMs, jitter } = this.#plan;
    const grown = Math.min(backoffMs * 2 ** Math.min(attempt - 1, 30), maxBackoffMs);
    const spread = grown * (1 + jitter * (2 * Math.random() - 1));
    const requested = "status" in result ? Number(result.headers["retry-after"]) * 1_000 : 0;
    return Math.round(Math.max(spread, Math.min(requested || 0, maxBackoffMs)));
  }
}

export const consumerPrefix = "subscription/";
export const consumerName = (key: ObjectKey): string => `${consumerPrefix}${key}`;

const isAccepted = (result: DeliveryResult): boolean =>
  "status" in result && result.status >= 200 && result.status < 300;

/** What a sink did, for its owner: `HTTP 500: …` or why there was no response. */
function describe(result: DeliveryResult): string {
  if (!("status" in result)) return `${result.reason}: ${result.message}`;
  const { status, body, headers } = result;
  if (status >= 300 && status < 400) return `HTTP ${status}: redirects are not followed`;
  const isText = /^(?:text\/|application\/(?:[\w.-]+\+)?json)/.test(
    headers["content-type"] ?? "text/",
  );
  const text = isText ? body.toString("utf8").trim() : "";
  // oxlint-disable-next-line no-control-regex -- they would be commands to a terminal
  const shown = text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ").slice(0, shownBytes);
  // A Function's callers get no text of an exception: its log has it, by this id.
  const { "x-request-id": id = "" } = headers;
  const request = status >= 500 && /^[\w.:+/=-]{1,128}$/.test(id) ? ` (request ${id})` : "";
  return (shown === "" ? `HTTP ${status}` : `HTTP ${status}: ${shown}`) + request;
}
