import { type Subscription, subscriptions } from "@spry/function";
import {
  type Clock,
  deepEqual,
  EventRecorder,
  type Informer,
  type KubeClient,
  keyOf,
  type Logger,
  messageOf,
  type ObjectKey,
  type Service,
  sleep,
} from "@spry/kube";
import { type Queue } from "@spry/queue";
import { type EventingMetrics } from "../metrics.ts";
import { type EventTraces } from "../tracing/event-traces.ts";
import { assess } from "../validation/assess.ts";
import { NamespaceLimit } from "../validation/namespace-limit.ts";
import { type Plan } from "../validation/plan.ts";
import {
  consumerName,
  consumerPrefix,
  type Deliver,
  SubscriptionWorker,
  type Trouble,
} from "./subscription-worker.ts";

export interface DispatcherOptions {
  client: KubeClient;
  queue: Queue;
  deliver: Deliver;
  subscriptions: Informer<Subscription>;
  services: Informer<Service>;
  metrics: EventingMetrics;
  traces: EventTraces;
  /** Another queue has taken its place: what is still in this one is reported. */
  isFormer?: boolean;
  clock: Clock;
  log: Logger;
}

const measureMs = 30_000;
const retryMs = 1_000;

/** Records: the uid of the Subscription that a consumer is of. */
const ownersBucket = "subscriptions";

interface Running {
  uid: string;
  plan: Plan;
  worker: SubscriptionWorker;
}

/** One worker for each Subscription that can be served, kept current by informers. */
export class Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #running = new Map<ObjectKey, Running>();
  /** Changes of one Subscription happen one after the other. */
  readonly #turns = new Map<ObjectKey, Promise<void>>();
  /** Of dead letters, as it was last seen. */
  readonly #dropped = new Map<ObjectKey, number>();
  /** What a former queue still has, as it was last reported. */
  readonly #left = new Map<ObjectKey, string>();
  readonly #limit: NamespaceLimit;
  readonly #recorder: EventRecorder;
  readonly #unlisten: (() => void)[];
  #isClosed = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    const { client, clock, log } = options;
    this.#limit = new NamespaceLimit(options.subscriptions, (key) => this.#refresh(key));
    this.#recorder = new EventRecorder({ client, component: "eventing", clock, log });
    this.#unlisten = [
      options.subscriptions.onChange(({ object }) => this.#refresh(keyOf(object))),
      options.services.onChange(({ object }) => this.#serviceChanged(object)),
    ];
  }

  /** Until the signal is aborted; then it waits for deliveries under way. */
  async run(signal: AbortSignal): Promise<void> {
    const { subscriptions: cache, services, clock, log } = this.#options;
    await Promise.race([
      Promise.all([cache.synced, services.synced]),
      new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true })),
    ]);
    while (!signal.aborted) {
      try {
        await this.#removeOrphans();
        break;
      } catch (error) {
        log.warn({ error: messageOf(error) }, "looking for what deleted Subscriptions have left");
        await sleep(clock, retryMs, signal);
      }
    }
    for (const subscription of cache.list()) this.#refresh(keyOf(subscription));
    while (!signal.aborted) {
      await this.#measure().catch(() => {});
      await sleep(clock, measureMs, signal);
    }
    this.#isClosed = true;
    for (const unlisten of this.#unlisten) unlisten();
    await Promise.allSettled(this.#turns.values());
    await Promise.all([...this.#running.values()].map(({ worker }) => worker.stop()));
  }

  /** A Subscription that was deleted while this did not run. */
  async #removeOrphans(): Promise<void> {
    const { queue, subscriptions: cache } = this.#options;
    for (const name of await queue.consumerNames()) {
      if (!name.startsWith(consumerPrefix)) continue;
      const key = name.slice(consumerPrefix.length);
      if (!cache.get(key)) await this.#remove(key);
    }
  }

  #serviceChanged({ metadata }: Service): void {
    const { namespace, name } = metadata;
    for (const subscription of this.#options.subscriptions.list()) {
      const isSink =
        subscription.metadata.namespace === namespace &&
        (subscription.spec.sink ?? "").includes(`//${name}.`);
      if (isSink) this.#refresh(keyOf(subscription));
    }
  }

  #refresh(key: ObjectKey): void {
    const { subscriptions: cache, services, log } = this.#options;
    // With an incomplete list, a missing Subscription would be treated as deleted.
    if (this.#isClosed || !cache.hasSynced || !services.hasSynced) return;
    const before = this.#turns.get(key) ?? Promise.resolve();
    const turn = before
      .then(() => this.#settle(key))
      .catch((error: unknown) => {
        log.warn(
          { subscription: key, error: messageOf(error) },
          "changing a Subscription, trying again",
        );
        this.#options.clock.after(retryMs, () => this.#refresh(key));
      })
      .finally(() => {
        if (this.#turns.get(key) === turn) this.#turns.delete(key);
      });
    this.#turns.set(key, turn);
  }

  async #settle(key: ObjectKey): Promise<void> {
    const { subscriptions: cache, services, metrics } = this.#options;
    if (this.#isClosed) return;
    const subscription = cache.get(key);
    const assessment =
      subscription && assess(subscription, (name) => services.get(name), this.#limit);
    const plan = assessment && "plan" in assessment ? assessment.plan : undefined;
    const running = this.#running.get(key);
    const uid = subscription?.metadata.uid ?? "";
    const isSame = running?.uid === uid && deepEqual(running.plan.consumer, plan?.consumer);
    if (plan && running && isSame) {
      running.plan = plan;
      running.worker.use(plan);
      return;
    }
    if (running) {
      this.#running.delete(key);
      await running.worker.stop();
    }
    if (subscription) await this.#claim(key, uid);
    if (plan) {
      await this.#ensureConsumer(key, uid, plan);
      const worker = new SubscriptionWorker(key, plan, {
        ...this.#options,
        onTrouble: (at, trouble) => this.#trouble(at, trouble),
      });
      this.#running.set(key, { uid, plan, worker });
    } else if (!subscription) {
      await this.#remove(key);
      metrics.forget(key);
    }
  }

  /**
   * Events from here on are its own, also while its sink does not work; and those since its status says that it is ready, as in a
   * queue that has taken the place of another.
   */
  async #ensureConsumer(key: ObjectKey, uid: string, plan: Plan) {
    const { client, queue, clock } = this.#options;
    const name = consumerName(key);
    const isKnown = (await queue.find(name)) !== undefined;
    const consumer = await queue.consumer(name, plan.consumer);
    if (isKnown) return;
    try {
      // Asked only now: one that is not ready yet becomes so when the consumer exists, however late the cache is.
      const [namespace = "", own = ""] = key.split("/");
      const fieldSelector = `metadata.name=${own}`;
      const { items } = await client.list(subscriptions, { namespace, fieldSelector });
      const present = items.find(({ metadata }) => metadata.uid === uid);
      const since = present && readySince(present);
      if (since !== undefined && since < clock.now())
        await consumer.replay({ time: since, beforeCreation: true });
    } catch (error) {
      // The next attempt begins with a new one.
      await queue.removeConsumer(name);
      throw error;
    }
  }

  /** A Subscription that was deleted and created again, perhaps by another tenant, inherits nothing. */
  async #claim(key: ObjectKey, uid: string): Promise<void> {
    const { queue } = this.#options;
    const known = await queue.get(ownersBucket, key);
    if (known === uid) return;
    if (known !== undefined) await this.#remove(key);
    await queue.put({ bucket: ownersBucket, key, value: uid });
  }

  async #remove(key: ObjectKey): Promise<void> {
    const { queue } = this.#options;
    await queue.removeConsumer(consumerName(key));
    await queue.remove(ownersBucket, key);
    this.#dropped.delete(key);
  }

  #trouble(key: ObjectKey, trouble: Trouble): void {
    this.#record(key, trouble, "Warning");
  }

  #record(key: ObjectKey, { reason, message }: Trouble, type: "Normal" | "Warning"): void {
    const subscription = this.#options.subscriptions.get(key);
    if (subscription) this.#recorder.record(subscriptions, subscription, { type, reason, message });
  }

  /** When it changes: dead letters do not move to the queue that has taken the place of this one. */
  #reportLeft(key: ObjectKey, { waiting, dead }: { waiting: number; dead: number }): void {
    const before = this.#left.get(key);
    const isEmpty = waiting === 0 && dead === 0;
    if (isEmpty && before === undefined) return;
    // While events are delivered from it, their number is another one each time.
    const now = `${waiting > 0} ${dead}`;
    if (now === before) return;
    this.#left.set(key, now);
    const left = `${counted(waiting, "event")} and ${counted(dead, "dead letter")}`;
    const message = isEmpty
      ? "the former NATS servers hold no events or dead letters of this Subscription any more"
      : `${left} remain in the former NATS servers: events are delivered from there, dead letters stay`;
    this.#record(key, { reason: "LeftInFormerQueue", message }, dead > 0 ? "Warning" : "Normal");
  }

  async #measure(): Promise<void> {
    const { queue, metrics, clock } = this.#options;
    metrics.bytes((await queue.state()).bytes);
    for (const key of this.#running.keys()) {
      const consumer = await queue.find(consumerName(key));
      if (!consumer) continue;
      const { waiting, dead, dropped = 0, oldestAt } = await consumer.state();
      const before = this.#dropped.get(key) ?? 0;
      this.#dropped.set(key, dropped);
      if (dropped > before) {
        metrics.dropped(key, dropped - before);
        const message = `${dropped - before} of its oldest dead letters were removed to make room for new ones`;
        this.#trouble(key, { reason: "DeadLettersDropped", message });
      }
      if (this.#options.isFormer === true) this.#reportLeft(key, { waiting, dead });
      const oldestSeconds = oldestAt === undefined ? 0 : (clock.now() - oldestAt) / 1000;
      metrics.state(key, { waiting, dead, oldestSeconds });
    }
  }
}

const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** Never before its creation, whose second is known; earlier statuses have no more of theirs. Undefined while it is not ready. */
function readySince({ metadata, status }: Subscription): number | undefined {
  if (status?.ready !== true) return undefined;
  const texts = (status.conditions ?? []).map(({ lastTransitionTime = "" }) => lastTransitionTime);
  const ready = Math.max(
    ...texts.map((text) => Date.parse(text)).filter((time) => !Number.isNaN(time)),
  );
  const precision = texts.some((text) => text.includes(".")) ? 0 : 1_000;
  const created = Date.parse(metadata.creationTimestamp ?? "") + precision;
  return Number.isFinite(ready) && !Number.isNaN(created) ? Math.max(ready, created) : undefined;
}
