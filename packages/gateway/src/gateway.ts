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
import { Destination } from "./activation/destination.ts";
import { createFrontServer } from "./http/front-server.ts";
import { drain, isLoopback, listen, type Listening } from "./http/listening.ts";
import { createAdminServer } from "./metrics/admin-server.ts";
import { GatewayMetrics } from "./metrics/gateway-metrics.ts";
import { serviceOfSlice } from "./routing/endpoints.ts";
import { RouteTable } from "./routing/route-table.ts";
import { ServiceRoutes } from "./routing/service-routes.ts";
import { defaultSettings, type GatewaySettings } from "./settings.ts";

export interface GatewayOptions extends Partial<GatewaySettings> {
  client: KubeClient;
  log?: Logger;
  clock?: Clock;
  /** One line for each request. */
  accessLog?: boolean;
  /** For how long it goes on accepting connections when it is closed: clients may learn of it late. */
  leaveMs?: number;
  /** How long requests in progress may take to end then. */
  drainMs?: number;
}

export interface Gateway {
  /** Resolves when the routes are known. Until then requests wait. */
  readonly ready: Promise<void>;
  /** On another address than loopback, responses to requests that fail say no more than strangers may know. */
  listen(options: { host: string; port: number }): Promise<Listening>;
  /** `/metrics`, `/healthz` and `/readyz`, on a port that is not for the public. */
  listenAdmin(options: { host: string; port: number }): Promise<Listening>;
}

/** Routes must be current soon after the API server is back. */
const maxWatchRetryMs = 1_000;
const defaultDrainMs = 4_000;

/** The way of a request to a Function. Informers start at once and keep its routes current. */
export function createGateway(options: GatewayOptions): Gateway {
  const clock = options.clock ?? systemClock;
  const log = options.log ?? silentLogger;
  const stop = new AbortController();
  const settings: GatewaySettings = { ...defaultSettings, ...options };
  const sources = createSources(options.client, clock, log);
  const services = new ServiceRoutes(sources, {
    readyWaitMs: settings.readyWaitMs,
    createDestination: (key, policy) => new Destination(key, policy, settings, clock),
  });
  const routes = new RouteTable(services, sources.functions);
  const metrics = new GatewayMetrics();
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
      const deps = { routes, metrics, settings, clock, log, isPublic };
      const accessLog = options.accessLog === true;
      const front = createFrontServer(deps, { ...settings, ready, accessLog });
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

function createSources(client: KubeClient, clock: Clock, log: Logger) {
  const watching = { clock, log, maxRetryMs: maxWatchRetryMs };
  return {
    // Only the Services of Functions: no other Service of a cluster may be reachable from outside.
    services: new Informer(client, resources.services, {
      ...watching,
      labelSelector: labels.functionName,
    }),
    slices: new Informer(client, resources.endpointSlices, {
      ...watching,
      indexes: { service: serviceOfSlice },
    }),
    functions: new Informer(client, functions, {
      ...watching,
      indexes: { namespace: ({ metadata }) => [metadata.namespace ?? ""] },
      // Their sources may be large, and only their conditions are of use here.
      transform: ({ metadata, status }) => ({ metadata, status }) as Function,
    }),
  };
}
