import { type RequestListener, type Server } from "node:http";
import { subscriptions } from "@spry/function";
import { Deliverer } from "@spry/gateway";
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
import { createAdminHandler } from "./admin/admin-handler.ts";
import { Dispatcher } from "./dispatcher/dispatcher.ts";
import { EventingMetrics } from "./metrics.ts";
import { createPublisher } from "./publisher/publisher.ts";
import { whileOurs } from "./status/start.ts";

export interface EventingOptions {
  client: KubeClient;
  /** Called again after a pause when it fails: the rest of the process does without. */
  openQueue: () => Promise<Queue>;
  clock?: Clock;
  log?: Logger;
}

export interface Eventing {
  /** For `/publish`; to be listened with by the caller, and closed before this. */
  readonly publisher: Server;
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
  const work = (async () => {
    const ready = await opened;
    if (!ready) return;
    await whileOurs({ client, clock, log, signal }, (inner) => dispatch(ready, inner));
  })().catch((error: unknown) =>
    log.error({ error: messageOf(error) }, "delivering events has ended"),
  );

  async function dispatch(ready: Queue, inner: AbortSignal): Promise<void> {
    const deliverer = new Deliverer({ client, clock, log, signal: inner });
    const cache = new Informer(client, subscriptions, { clock, log, maxRetryMs: 1_000 });
    const dispatcher = new Dispatcher({
      client,
      queue: ready,
      deliver: (request) => deliverer.deliver(request),
      subscriptions: cache,
      services: deliverer.services,
      metrics,
      clock,
      log,
    });
    void cache.run(inner);
    await dispatcher.run(inner);
  }

  return {
    publisher: createPublisher({ queue: () => queue, metrics, log }),
    admin: createAdminHandler({ client, queue: () => queue, log }),
    metrics,
    queue: () => queue,
    async close() {
      stop.abort();
      await work;
      await (await opened)?.close();
    },
  };
}
