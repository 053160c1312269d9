import { type Function, functions, labels } from "@spry/function";
import {
  type Clock,
  Informer,
  type KubeClient,
  type Logger,
  resources,
  silentLogger,
  sleep,
  systemClock,
} from "@spry/kube";
import { createAdminServer } from "./admin-server.ts";
import { type ExchangeDeps, type ExchangeSettings } from "./exchange.ts";
import { createFrontServer } from "./front-server.ts";
import { drain, isLoopback, listen, type Listening } from "./listening.ts";
import { GatewayMetrics } from "./metrics.ts";
import { RouteTable, serviceOfSlice } from "./route-table.ts";

export interface GatewayOptions extends Partial<Omit<ExchangeSettings, "isPublic">> {
  client: KubeClient;
  log?: Logger;
  clock?: Clock;
  /** One line for each request. */
  accessLog?: boolean;
  /** For how long it goes on accepting connections when it is closed: whoever sends requests may hear of it late. */
  leaveMs?: number;
  /** How long requests under way may take to end then. */
  drainMs?: number;
}

export interface Gateway {
  /** Resolves when the routes are known. Until then requests wait. */
  readonly ready: Promise<void>;
  /** On another address than loopback, answers to requests that fail say no more than strangers may know. */
  listen(options: { host: string; port: number }): Promise<Listening>;
  /** `/metrics`, `/healthz` and `/readyz`, on a port that is not for the public. */
  listenAdmin(options: { host: string; port: number }): Promise<Listening>;
}

const defaults: Omit<ExchangeSettings, "isPublic"> = {
  // Above the 180 s after which a Function itself answers 408.
  upstreamTimeoutMs: 200_000,
  idleTimeoutMs: 3_600_000,
  readyWaitMs: 10_000,
  maxWaiting: 1_000,
  maxConcurrency: 1_000,
  maxRequestBytes: 1024 ** 3,
  bodyStallMs: 60_000,
  headTimeoutMs: 60_000,
  trustForwarded: false,
};
/** Routes must be current soon after the API server is back. */
const maxWatchRetryMs = 1_000;
const defaultDrainMs = 4_000;

/** The way of a request to a Function. Informers start at once and keep its routes current. */
export function createGateway(options: GatewayOptions): Gateway {
  const clock = options.clock ?? systemClock;
  const log = options.log ?? silentLogger;
  const stop = new AbortController();
  const watching = { clock, log, maxRetryMs: maxWatchRetryMs };
  const sources = {
    // Only the Services of Functions: nothing else of a cluster is to be reachable from outside.
    services: new Informer(options.client, resources.services, {
      ...watching,
      labelSelector: labels.functionName,
    }),
    slices: new Informer(options.client, resources.endpointSlices, {
      ...watching,
      indexes: { service: serviceOfSlice },
    }),
    functions: new Informer(options.client, functions, {
      ...watching,
      indexes: { namespace: ({ metadata }) => [metadata.namespace ?? ""] },
      // Their sources may be large, and only their conditions are of use here.
      transform: ({ metadata, status }) => ({ metadata, status }) as Function,
    }),
  };
  const settings = { ...defaults, ...options, isPublic: true };
  const routes = new RouteTable(sources, settings, clock);
  const metrics = new GatewayMetrics();
  const deps: ExchangeDeps = {
    routes,
    functions: sources.functions,
    settings,
    metrics,
    clock,
    log,
  };
  for (const informer of Object.values(sources)) void informer.run(stop.signal);
  // Functions only explain: a cluster without their definition still has routes.
  const ready = (async () => {
    await sources.services.synced;
    await sources.slices.synced;
  })();
  return {
    ready,
    async listen(address) {
      const isPublic = !isLoopback(address.host);
      const own = { ...deps, settings: { ...settings, isPublic } };
      const front = createFrontServer(own, ready, options.accessLog === true);
      const { server, tunnels } = front;
      const port = await listen(server, address);
      return {
        port,
        async close() {
          front.leave();
          if (options.leaveMs !== undefined) await sleep(clock, options.leaveMs);
          await drain(server, tunnels, options.drainMs ?? defaultDrainMs, clock);
          stop.abort();
          routes.close();
        },
      };
    },
    async listenAdmin(address) {
      const server = createAdminServer(metrics, ready);
      const port = await listen(server, address);
      return { port, close: () => drain(server, [], 0, clock) };
    },
  };
}
