import { type Clock, sleep, systemClock } from "./clock.ts";
import { isConflict, messageOf } from "./errors.ts";
import { type Informer } from "./informer.ts";
import { type Logger, silentLogger } from "./log.ts";
import { type ControllerMetrics, type PassResult } from "./metrics/controller-metrics.ts";
import { keyOf, type KubeObject, type ObjectKey } from "./objects.ts";
import { controllerOf } from "./owner.ts";
import { apiVersionOf, type Resource } from "./resources.ts";
import { WorkQueue } from "./work-queue.ts";

/** What a pass wants next. Nothing: wait for the next change. */
export interface ReconcileResult {
  /** Look again after this pause even if nothing changes. */
  requeueAfterMs?: number;
}

/**
 * Brings the world to the state that one object describes. Level-based: it is handed a name, never
 * an event, and works from the latest state. A thrown error is retried with backoff.
 */
export type Reconcile = (key: ObjectKey, signal: AbortSignal) => Promise<ReconcileResult | void>;

export interface ControllerOptions {
  name: string;
  reconcile: Reconcile;
  workers?: number;
  /** A pass that takes longer is abandoned (its signal aborted) and retried. */
  timeoutMs?: number;
  clock?: Clock;
  log?: Logger;
  metrics?: ControllerMetrics;
  queue?: WorkQueue;
}

const defaultTimeoutMs = 60_000;
/** How long the next pass of a key waits for one that was abandoned and does not end. */
const abandonedMs = 600_000;

/**
 * Takes keys off a queue and reconciles them with N workers; never two passes of one key at a time.
 * Feed it with `watch`, `watchOwned` or `enqueue`.
 */
export class Controller {
  readonly name: string;
  readonly queue: WorkQueue;
  readonly #options: ControllerOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #synced: Promise<void>[] = [];
  /** Passes under way, and who waits for one of them to end. */
  #active = 0;
  readonly #waiting = new Set<() => void>();

  constructor(options: ControllerOptions) {
    const { name, metrics } = options;
    this.name = name;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.queue =
      options.queue ??
      new WorkQueue({ clock: this.#clock, ...(metrics ? { metrics: metrics.queue(name) } : {}) });
    this.#log = (options.log ?? silentLogger).child({ controller: name });
  }

  enqueue(key: ObjectKey): void {
    this.queue.add(key);
  }

  /**
   * Enqueues, on every change of an object, the keys that it concerns: its own by default. After an
   * update these are the keys of both versions, since a reference may have moved.
   */
  watch<T extends KubeObject>(
    informer: Informer<T>,
    keysOf: (object: T) => Iterable<ObjectKey> = (object) => [keyOf(object)],
  ): this {
    this.#synced.push(informer.synced);
    informer.onChange((change) => {
      for (const key of keysOf(change.object)) this.enqueue(key);
      if (change.type === "updated") for (const key of keysOf(change.previous)) this.enqueue(key);
    });
    return this;
  }

  /** Enqueues the owner whenever an object that it controls changes. */
  watchOwned<T extends KubeObject>(informer: Informer<T>, owner: Resource): this {
    const apiVersion = apiVersionOf(owner);
    return this.watch(informer, (object) => {
      const reference = controllerOf(object);
      if (reference?.kind !== owner.kind || reference.apiVersion !== apiVersion) return [];
      const { namespace } = object.metadata;
      return [owner.namespaced && namespace ? `${namespace}/${reference.name}` : reference.name];
    });
  }

  /**
   * Works, once the watched informers are in sync, until the signal is aborted; resolves when the
   * passes under way have ended.
   */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.queue.close(), { once: true });
    if (signal.aborted) this.queue.close();
    await Promise.race([Promise.all(this.#synced), aborted(signal)]);
    const workers = Array.from({ length: this.#options.workers ?? 1 }, () => this.#work(signal));
    await Promise.all(workers);
  }

  async #work(signal: AbortSignal): Promise<void> {
    for (;;) {
      const key = await this.queue.take();
      if (key === undefined) return;
      this.#options.metrics?.active(this.name, 1);
      this.#active++;
      await this.#pass(key, signal);
      this.#active--;
      this.#options.metrics?.active(this.name, -1);
      for (const resolve of this.#waiting) resolve();
      this.#waiting.clear();
    }
  }

  /**
   * Whether a worker is free to take up a key, at the latest after this time. The length of the queue does not
   * matter: a controller with much to do moves, one whose passes all hang does not.
   */
  async moves(withinMs: number): Promise<boolean> {
    if (this.#active < (this.#options.workers ?? 1)) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const cancel = this.#clock.after(withinMs, () => resolve(false));
    const onEnd = () => resolve(true);
    this.#waiting.add(onEnd);
    try {
      return await promise;
    } finally {
      cancel();
      this.#waiting.delete(onEnd);
    }
  }

  /** The outcome table of a pass: done, look again later, retry. Never throws. */
  async #pass(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const startedAt = this.#clock.elapsed();
    const timeoutMs = this.#options.timeoutMs ?? defaultTimeoutMs;
    const timeout = new AbortController();
    const expired = Promise.withResolvers<never>();
    const cancel = this.#clock.after(timeoutMs, () => {
      const error = new Error(`reconciling exceeded its time limit (${timeoutMs} ms)`);
      timeout.abort(error);
      expired.reject(error);
    });
    const pass = this.#reconcile(key, AbortSignal.any([signal, timeout.signal]));
    let outcome: PassResult = "success";
    try {
      const result = await Promise.race([pass, expired.promise]);
      this.queue.forget(key);
      if (result?.requeueAfterMs !== undefined) {
        outcome = "requeue_after";
        this.queue.addAfter(key, result.requeueAfterMs);
      }
    } catch (error) {
      outcome = timeout.signal.aborted ? "timeout" : "error";
      if (!signal.aborted) this.#retry(key, error);
    } finally {
      cancel();
      this.#options.metrics?.reconciled(
        this.name,
        outcome,
        (this.#clock.elapsed() - startedAt) / 1000,
      );
      if (outcome === "timeout") void this.#doneAfter(key, pass);
      else this.queue.done(key);
    }
  }

  /** A reconciler that throws before its first `await` fails like any other. */
  async #reconcile(key: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | void> {
    return this.#options.reconcile(key, signal);
  }

  #retry(key: ObjectKey, error: unknown): void {
    const retryMs = this.queue.retry(key);
    // A conflict only means that another client was faster: the next pass sees its write.
    const level = isConflict(error) ? "debug" : "warn";
    const fields = { key, error: messageOf(error), retryMs };
    this.#log[level](fields, "reconciling failed, trying again");
  }

  /**
   * An abandoned pass may still be writing. Its key stays taken until it has really ended, while the worker continues
   * with other keys.
   */
  async #doneAfter(key: ObjectKey, pass: Promise<unknown>): Promise<void> {
    const given = new AbortController();
    const ended = pass.then(
      () => true,
      () => true,
    );
    const gaveUp = sleep(this.#clock, abandonedMs, given.signal).then(() => false);
    if (!(await Promise.race([ended, gaveUp]))) {
      this.#log.error(
        { key },
        "an abandoned pass has not ended, starting the next one in parallel",
      );
    }
    given.abort();
    this.queue.done(key);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
