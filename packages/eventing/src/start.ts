import { type RequestListener, type Server } from "node:http";
import { subscriptions } from "@spry/function";
import { type CallAcceptor, Deliverer } from "@spry/gateway";
import {
  type Clock,
  Informer,
  type KubeClient,
  type Logger,
  messageOf,
  silentLogger,
  sleep,
  systemClock,
} from "@spry/kube";
import { type Queue } from "@spry/queue";
import { type Calls, createAdminHandler } from "./admin/admin-handler.ts";
import { createCallAcceptor } from "./calls/acceptor.ts";
import { CallRunner } from "./calls/runner.ts";
import { CallSubmitter } from "./calls/submit.ts";
import { type Deliver } from "./dispatcher/subscription-worker.ts";
import { Scheduler } from "./schedules/scheduler.ts";
import { Dispatcher } from "./dispatcher/dispatcher.ts";
import { EventingMetrics } from "./metrics.ts";
import { createPublisher } from "./publisher/publisher.ts";
import { whileOurs } from "./status/start.ts";

export interface EventingOptions {
  client: KubeClient;
  /** Called again after a pause when it fails: the rest of the process does without. */
  openQueue: () => Promise<Queue>;
  /** Whether results of calls may be sent to this machine and its private networks: on one machine, not in a cluster. */
  allowPrivate: boolean;
  clock?: Clock;
  log?: Logger;
}

export interface Eventing {
  /** For `/publish`; to be listened with by the caller, and closed before this. */
  readonly publisher: Server;
  /** For the gateway. */
  readonly calls: CallAcceptor;
  /** Of an HTTPS server that asks clients for certificates of the API server's authority. */
  readonly admin: RequestListener;
  readonly metrics: EventingMetrics;
  /** The queue, once it is open. */
  queue(): Queue | undefined;
  /** Ends after the deliveries under way. */
  close(): Promise<void>;
}

const retryMs = 2_000;

/** Events of one process: its publisher, and their delivery. Where another installation serves Subscriptions, nothing is delivered. */
export function startEventing(options: EventingOptions): Eventing {
  const { client, openQueue, clock = systemClock, log = silentLogger } = options;
  const stop = new AbortController();
  const { signal } = stop;
  const metrics = new EventingMetrics();
  let queue: Queue | undefined;
  const opened = (async () => {
    while (!signal.aborted) {
      try {
        queue = await openQueue();
        return queue;
      } catch (error) {
        log.error({ error: messageOf(error) }, "opening the queue of events, trying again");
        await sleep(clock, retryMs, signal);
      }
    }
    return undefined;
  })();
  const submitter = new CallSubmitter(clock);
  let calls: Calls | undefined;
  const work = (async () => {
    const ready = await opened;
    if (!ready) return;
    const deliverer = new Deliverer({ client, clock, log, signal });
    const deliver: Deliver = (request) => deliverer.deliver(request);
    const common = { client, queue: ready, deliver, clock, log };
    const runner = new CallRunner({ ...common, allowPrivate: options.allowPrivate, signal });
    const scheduler = new Scheduler({ ...common, submitter, runner, signal });
    await Promise.race([deliverer.ready, aborted(signal)]);
    calls = { runner, scheduler };
    await Promise.all([
      runner.run(),
      scheduler.run(),
      whileOurs({ client, clock, log, signal }, (inner) => {
        const cache = new Informer(client, subscriptions, { clock, log, maxRetryMs: 1_000 });
        void cache.run(inner);
        const { services } = deliverer;
        return new Dispatcher({ ...common, subscriptions: cache, services, metrics }).run(inner);
      }),
    ]);
  })().catch((error: unknown) => log.error({ error: messageOf(error) }, "delivering has ended"));

  return {
    publisher: createPublisher({ queue: () => queue, metrics, log }),
    calls: createCallAcceptor({
      queue: () => queue,
      submitter,
      runner: () => calls?.runner,
      log,
    }),
    admin: createAdminHandler({ client, queue: () => queue, calls: () => calls, log }),
    metrics,
    queue: () => queue,
    async close() {
      stop.abort();
      await work;
      await (await opened)?.close();
    },
  };
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
