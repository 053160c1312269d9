import { type Clock, systemClock } from "./clock.ts";
import { isConflict, messageOf } from "./errors.ts";
import { type Logger, silentLogger } from "./log.ts";
import { type ObjectKey } from "./objects.ts";
import { WorkQueue } from "./work-queue.ts";

/** What a pass wants next. Nothing: wait for the next change. */
export interface ReconcileResult {
  /** Look again after this pause even if nothing changes. */
  requeueAfterMs?: number;
}

/**
 * Brings one object's surroundings to what the object says. Level-based: it is handed a name, never
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
  queue?: WorkQueue;
}

const defaultTimeoutMs = 60_000;

/** Takes keys off a queue and reconciles them with N workers. Feed it with `enqueue`. */
export class Controller {
  readonly name: string;
  readonly queue: WorkQueue;
  readonly #options: ControllerOptions;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor(options: ControllerOptions) {
    this.name = options.name;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.queue = options.queue ?? new WorkQueue({ clock: this.#clock });
    this.#log = (options.log ?? silentLogger).child({ controller: options.name });
  }

  enqueue(key: ObjectKey): void {
    this.queue.add(key);
  }

  /** Works until the signal is aborted; resolves when the passes under way have ended. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.queue.close(), { once: true });
    if (signal.aborted) this.queue.close();
    const workers = Array.from({ length: this.#options.workers ?? 1 }, () => this.#work(signal));
    await Promise.all(workers);
  }

  async #work(signal: AbortSignal): Promise<void> {
    for (;;) {
      const key = await this.queue.take();
      if (key === undefined) return;
      try {
        await this.#pass(key, signal);
      } finally {
        this.queue.done(key);
      }
    }
  }

  /** The outcome table of a pass: done, look again later, retry. */
  async #pass(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const timeoutMs = this.#options.timeoutMs ?? defaultTimeoutMs;
    const timeout = new AbortController();
    const expired = Promise.withResolvers<never>();
    const cancel = this.#clock.after(timeoutMs, () => {
      const error = new Error(`reconciling took longer than ${timeoutMs} ms`);
      timeout.abort(error);
      expired.reject(error);
    });
    try {
      const pass = this.#options.reconcile(key, AbortSignal.any([signal, timeout.signal]));
      const result = await Promise.race([pass, expired.promise]);
      this.queue.forget(key);
      if (result?.requeueAfterMs !== undefined) this.queue.addAfter(key, result.requeueAfterMs);
    } catch (error) {
      if (signal.aborted) return;
      const retryMs = this.queue.retry(key);
      // A conflict only says that somebody else was faster: the next pass sees their write.
      const level = isConflict(error) ? "debug" : "warn";
      this.#log[level](
        { key, error: messageOf(error), retryMs },
        "reconciling failed, trying again",
      );
    } finally {
      cancel();
    }
  }
}
