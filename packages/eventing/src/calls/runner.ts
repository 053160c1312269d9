import {
  type Clock,
  type KubeClient,
  type Logger,
  messageOf,
  type ObjectKey,
  sleep,
} from "@spry/kube";
import { type Consumer, type Delivery, type Queue, RecordChangedError } from "@spry/queue";
import { type Deliver } from "../dispatcher/subscription-worker.ts";
import { Reach } from "../reach.ts";
import {
  callBounds,
  callbackConsumer,
  callbackSubject,
  callsConsumerPrefix,
  consumerOfCalls,
  deadlineConsumer,
  deadlineSubject,
} from "./call.ts";
import { CallMaker } from "./call-maker.ts";
import { CallbackSender } from "./callback-sender.ts";
import { cancelCall } from "./cancel.ts";
import { FunctionLooks } from "./function-looks.ts";
import { type NamespaceClaims } from "./namespace-claims.ts";

export interface RunnerDeps {
  client: KubeClient;
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
const maxCallbacks = 20;
const maxDeadlines = 20;
/** Looks for calls whose messages the queue has given up, so often. */
const lostMs = 60_000;
const lostAtATime = 100;

/** A Function without calls for so long is not listened for any more, until there is one. */
const idleMs = 600_000;

/** What takes the calls of one Function. */
interface Loop {
  consumer: Promise<Consumer>;
  stop: AbortController;
  /** When a call was last accepted, by `Clock.elapsed`. */
  usedAt: number;
}

/** Makes the waiting calls, those of each Function independently, and sends the results to the URLs that the clients specified. */
export class CallRunner {
  readonly #deps: RunnerDeps;
  readonly #loops = new Map<ObjectKey, Loop>();
  /** By Function, until it has ended: a consumer has one loop at a time. */
  readonly #taking = new Map<ObjectKey, Promise<unknown>>();
  readonly #maker: CallMaker;
  readonly #callbacks: CallbackSender;

  constructor(deps: RunnerDeps) {
    const looks = new FunctionLooks(deps.client, deps.clock);
    this.#deps = deps;
    this.#maker = new CallMaker(deps, looks);
    this.#callbacks = new CallbackSender(deps, looks);
  }

  /** Continues with what was accepted before; resolves when the signal is aborted and calls under way have ended. */
  async run(): Promise<void> {
    const { queue, clock, signal, othersAccept = false } = this.#deps;
    await this.#ensureAll();
    const callbacks = await queue.consumer(callbackConsumer, {
      subjects: [callbackSubject],
      from: "start",
    });
    const deadlines = await queue.consumer(deadlineConsumer, {
      subjects: [deadlineSubject],
      from: "start",
    });
    const callBack = (delivery: Delivery) => this.#callbacks.send(delivery);
    const end = (delivery: Delivery) => this.#maker.end(delivery.message.attributes, delivery);
    const loops = [
      this.#take(callbacks, maxCallbacks, callBack, signal),
      this.#take(deadlines, maxDeadlines, end, signal),
    ];
    let lookedAt = clock.elapsed();
    while (!signal.aborted) {
      await sleep(clock, othersMs, signal);
      if (signal.aborted) break;
      if (clock.elapsed() - lookedAt >= lostMs) {
        lookedAt = clock.elapsed();
        await this.#endLost().catch(() => {});
      }
      if (othersAccept) await this.#ensureAll().catch(() => {});
      else await this.#endIdle().catch(() => {});
    }
    await Promise.allSettled([...loops, ...this.#taking.values()]);
  }

  /** For how many Functions calls are taken. */
  get size(): number {
    return this.#loops.size;
  }

  /** What accepts a call has asked for the loop a moment before: none is ended between the two. */
  async #endIdle(): Promise<void> {
    const isIdle = ({ usedAt }: Loop) => this.#deps.clock.elapsed() - usedAt >= idleMs;
    for (const [key, loop] of this.#loops) {
      if (!isIdle(loop)) continue;
      const { waiting } = await (await loop.consumer).state();
      if (waiting > 0 || !isIdle(loop)) continue;
      this.#loops.delete(key);
      this.#maker.forget(key);
      loop.stop.abort();
    }
  }

  /** Their messages have become dead letters of the queue, which is full or keeps nothing for longer: such calls have ended. */
  async #endLost(): Promise<void> {
    for (const [key, loop] of this.#loops) {
      const consumer = await loop.consumer;
      if ((await consumer.state()).dead === 0) continue;
      const [namespace = ""] = key.split("/");
      const letters = await consumer.deadLetters({ limit: lostAtATime });
      for (const { event, reason, message } of letters)
        await this.#maker.giveUp(namespace, event.attributes, { reason, message });
      await consumer.discard(letters.map(({ id }) => id));
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
      known.usedAt = clock.elapsed();
      await known.consumer;
      return;
    }
    const before = this.#taking.get(key) ?? Promise.resolve();
    const consumer = before.then(() => queue.consumer(...consumerOfCalls(key)));
    const stop = new AbortController();
    this.#loops.set(key, { consumer, stop, usedAt: clock.elapsed() });
    try {
      const ready = await consumer;
      const until = AbortSignal.any([signal, stop.signal]);
      const reach = new Reach(clock);
      const call = (each: Delivery) => this.#maker.make(key, each, reach);
      const taking = this.#take(ready, callBounds.inFlightOfFunction, call, until, reach);
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
    if (isCancelled) this.#maker.abort(id);
    return isCancelled;
  }

  async #take(
    consumer: Consumer,
    max: number,
    handle: (delivery: Delivery) => Promise<void>,
    signal: AbortSignal,
    reach = new Reach(this.#deps.clock),
  ): Promise<void> {
    const { clock, log } = this.#deps;
    const active = new Set<Promise<void>>();
    while (!signal.aborted) {
      try {
        const free = reach.limit(max) - active.size;
        if (free <= 0) {
          // Others follow as soon as the first one has been sent.
          await Promise.race(reach.isAway ? [...active, reach.back] : active);
          continue;
        }
        if (reach.pauseMs > 0) {
          await sleep(clock, reach.pauseMs, signal);
          continue;
        }
        for (const delivery of await consumer.next(free, signal)) {
          const handled: Promise<void> = handle(delivery)
            .catch((error: unknown) => {
              // Cancelled meanwhile, which the next look at it shows; or another process has made it.
              if (error instanceof RecordChangedError) return delivery.retry(0, { counts: false });
              log.warn(
                { consumer: consumer.name, error: messageOf(error) },
                "making a call, trying again",
              );
              delivery.retry(retryMs, { counts: false });
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
}
