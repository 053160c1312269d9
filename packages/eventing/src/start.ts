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
import { createAdminHandler } from "./admin/admin-handler.ts";
import { aggregated } from "./admin/aggregated.ts";
import { callerOf } from "./admin/caller.ts";
import { type FrontProxy, frontProxyUser } from "./admin/front-proxy.ts";
import { administerCalls } from "./calls/administration.ts";
import { createCallAcceptor } from "./calls/acceptor.ts";
import { clusterTrustMs, LastKnownNamespaces, NamespaceClaims } from "./calls/namespace-claims.ts";
import { CallRunner } from "./calls/runner.ts";
import { CallSubmitter } from "./calls/submit.ts";
import { type Deliver } from "./dispatcher/subscription-worker.ts";
import { Scheduler } from "./schedules/scheduler.ts";
import { Dispatcher } from "./dispatcher/dispatcher.ts";
import { EventingMetrics } from "./metrics.ts";
import { createPublisher } from "./publisher/publisher.ts";
import { whileOurs } from "./status/start.ts";
import { EventTraces } from "./tracing/event-traces.ts";
import { SpanExporter } from "./tracing/span-exporter.ts";

export interface EventingOptions {
  client: KubeClient;
  /** Called again after a pause when it fails: the rest of the process does without. */
  openQueue: () => Promise<Queue>;
  /** Of the queue that this one has taken the place of: what waits there is delivered, and nothing is added. */
  openFormer?: () => Promise<Queue>;
  /** Whether results of calls may be sent to this machine and its private networks: on one machine, not in a cluster. */
  allowPrivate: boolean;
  /**
   * With several processes: runs the work in the one that leads, until the signal is aborted; a leader has a queue of its own,
   * so that what it holds is given back when it no longer leads. Without it this process is alone.
   */
  lead?: (work: Leading, signal: AbortSignal) => Promise<void>;
  /**
   * The administration is an API of the API server's, whose requests it passes on, and no others are answered; undefined until the
   * server's trust is known. Without it clients come by themselves.
   */
  frontProxy?: () => FrontProxy | undefined;
  /** Of the collector of traces (OTLP over HTTP); undefined while there is none. */
  traceEndpoint?: () => string | undefined;
  clock?: Clock;
  log?: Logger;
}

/** Delivering, by what leads: its writes go through this client. */
export type Leading = (client: KubeClient, signal: AbortSignal) => Promise<void>;

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
  /** When nothing is delivered any more: with an error if it is for that reason. */
  readonly ended: Promise<Error | undefined>;
  /** Ends after the deliveries under way. */
  close(): Promise<void>;
}

const retryMs = 2_000;
/** It may be gone for good. */
const formerRetryMs = 60_000;

/** Events of one process: its publisher, and their delivery. Where another installation serves Subscriptions, nothing is delivered. */
export function startEventing(options: EventingOptions): Eventing {
  const { client, openQueue, clock = systemClock, log = silentLogger } = options;
  const stop = new AbortController();
  const { signal } = stop;
  const metrics = new EventingMetrics();
  const spans = new SpanExporter(options.traceEndpoint ?? (() => undefined), log);
  const traces = new EventTraces(spans);
  let queue: Queue | undefined;
  const open = async (until: AbortSignal) => {
    while (!until.aborted) {
      try {
        return await openQueue();
      } catch (error) {
        log.error({ error: messageOf(error) }, "opening the queue of events, trying again");
        await sleep(clock, retryMs, until);
      }
    }
    return undefined;
  };
  const opened = open(signal).then((one) => (queue = one));
  const submitter = new CallSubmitter(clock);
  const claims = new NamespaceClaims(
    client,
    clock,
    new LastKnownNamespaces({
      client,
      clock,
      // Of several processes, one may be cut off from a server that others change.
      trustMs: options.lead ? clusterTrustMs : Number.POSITIVE_INFINITY,
      log,
      signal,
    }),
  );
  let runner: CallRunner | undefined;
  const deliverAll = async (
    ready: Queue,
    leader: KubeClient,
    until: AbortSignal,
    isFormer = false,
  ) => {
    const deliverer = new Deliverer({ client, clock, log, signal: until });
    const deliver: Deliver = (request) => deliverer.deliver(request);
    const common = { client: leader, queue: ready, deliver, claims, clock, log };
    const { allowPrivate } = options;
    // What waits in it is not what waits for a Subscription now.
    const seen = isFormer ? new EventingMetrics() : metrics;
    const own = new CallRunner({
      ...common,
      allowPrivate,
      addressProblem: (address) => deliverer.addressProblem(address),
      othersAccept: options.lead !== undefined,
      signal: until,
    });
    const scheduler = new Scheduler({ ...common, submitter, runner: own, signal: until });
    await Promise.race([deliverer.ready, aborted(until)]);
    if (!isFormer) runner = own;
    await Promise.all([
      own.run(),
      ...(isFormer ? [] : [scheduler.run()]),
      whileOurs({ client, clock, log, signal: until }, (inner) => {
        const cache = new Informer(client, subscriptions, { clock, log, maxRetryMs: 1_000 });
        void cache.run(inner);
        const { services } = deliverer;
        return new Dispatcher({
          ...common,
          subscriptions: cache,
          services,
          metrics: seen,
          traces,
          isFormer,
        }).run(inner);
      }),
    ]);
  };
  const deliverFormer = async (leader: KubeClient, until: AbortSignal) => {
    while (options.openFormer && !until.aborted) {
      const former = await options.openFormer().catch((error: unknown) => {
        log.info({ error: messageOf(error) }, "the former queue of events cannot be used");
      });
      if (!former) {
        await sleep(clock, formerRetryMs, until);
        continue;
      }
      try {
        await deliverAll(former, leader, until, true);
      } finally {
        await former.close();
      }
    }
  };
  const leading: Leading = async (leader, until) => {
    const own = await open(until);
    if (!own) return;
    try {
      await Promise.all([deliverAll(own, leader, until), deliverFormer(leader, until)]);
    } finally {
      runner = undefined;
      await own.close();
    }
  };
  const alone = async () => {
    const ready = await opened;
    if (!ready) return;
    await Promise.all([deliverAll(ready, client, signal), deliverFormer(client, signal)]);
  };
  const ended = (options.lead?.(leading, signal) ?? alone()).then(
    () => undefined,
    (error: unknown) => {
      log.error({ error: messageOf(error) }, "delivering has ended");
      return error instanceof Error ? error : new Error(String(error));
    },
  );

  const { frontProxy } = options;
  const admin = createAdminHandler({
    client,
    queue: () => queue,
    calls: administerCalls({ client, submitter, clock, runner: () => runner }),
    claim: (at, namespace) => claims.claim(at, namespace),
    metrics,
    traces,
    async callerOf(request) {
      if (!frontProxy) return callerOf(client, request);
      const trusted = frontProxy();
      return trusted && frontProxyUser(trusted, request);
    },
    log,
  });

  return {
    publisher: createPublisher({ queue: () => queue, metrics, traces, log }),
    calls: createCallAcceptor({
      queue: () => queue,
      submitter,
      claims,
      runner: () => runner,
      clock,
      log,
    }),
    admin: frontProxy ? aggregated(admin) : admin,
    metrics,
    queue: () => queue,
    ended,
    async close() {
      stop.abort();
      await ended;
      await spans.flush();
      await (await opened)?.close();
    },
  };
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
