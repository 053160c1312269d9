import * as http from "node:http";
import { type AddressInfo, type Socket } from "node:net";
import { functions, labels } from "@spry/function";
import {
  type Clock,
  Informer,
  type KubeClient,
  type Logger,
  messageOf,
  resources,
  silentLogger,
  sleep,
  systemClock,
} from "@spry/kube";
import { type Answer, rawAnswer, routesUnknown, sendAnswer, unknownHost } from "./answer.ts";
import {
  Exchange,
  type ExchangeDeps,
  type ExchangeSettings,
  type UpgradeSocket,
} from "./exchange.ts";
import { functionOfHost } from "./host.ts";
import { GatewayMetrics } from "./metrics.ts";
import { RouteTable, serviceOfSlice } from "./route-table.ts";

export interface GatewayOptions extends Partial<ExchangeSettings> {
  client: KubeClient;
  log?: Logger;
  clock?: Clock;
  /** One line for each request. */
  accessLog?: boolean;
  /** How long requests under way may take to end when the gateway is closed. */
  drainMs?: number;
}

export interface Listening {
  readonly port: number;
  /** Stops accepting, lets requests under way end, and then closes what is left. */
  close(): Promise<void>;
}

export interface Gateway {
  /** Resolves when the routes are known. Until then requests wait. */
  readonly ready: Promise<void>;
  listen(options: { host: string; port: number }): Promise<Listening>;
  /** `/metrics`, `/healthz` and `/readyz`, on a port that is not for the public. */
  listenAdmin(options: { host: string; port: number }): Promise<Listening>;
}

const defaults: ExchangeSettings = {
  // Above the 180 s after which a Function itself answers 408.
  upstreamTimeoutMs: 200_000,
  idleTimeoutMs: 3_600_000,
  readyWaitMs: 10_000,
  maxWaiting: 1_000,
  maxConcurrency: 1_000,
  maxRequestBytes: 1024 ** 3,
  trustForwarded: false,
};
/** Load balancers reuse connections for a minute; the side further back must not close first. */
const keepAliveTimeoutMs = 65_000;
const headersTimeoutMs = 60_000;
/** Routes must be current soon after the API server is back. */
const maxWatchRetryMs = 1_000;
const maxConnections = 20_000;
const sweepMs = 50;
const lingerMs = 100;

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
    }),
  };
  const settings = { ...defaults, ...options };
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
      const server = createServer(deps, ready, options.accessLog === true);
      const port = await listening(server, address);
      return {
        port,
        async close() {
          await drain(server, options.drainMs ?? 4_000, clock);
          stop.abort();
          routes.close();
        },
      };
    },
    async listenAdmin(address) {
      let isReady = false;
      void ready.then(() => (isReady = true));
      const server = http.createServer((request, response) => {
        const page = adminPage(request.url ?? "", metrics, isReady);
        response.writeHead(page.status, { "content-type": "text/plain; version=0.0.4" });
        response.end(page.body);
      });
      const port = await listening(server, address);
      return { port, close: () => drain(server, 0, clock) };
    },
  };
}

function createServer(deps: ExchangeDeps, ready: Promise<void>, accessLog: boolean): http.Server {
  const { metrics, settings, clock, log } = deps;
  let isReady = false;
  void ready.then(() => (isReady = true));
  const handle = async (
    request: http.IncomingMessage,
    response: http.ServerResponse,
    upgrade?: UpgradeSocket,
  ) => {
    metrics.active++;
    (upgrade?.socket ?? response).once("close", () => metrics.active--);
    if (!server.listening) response.shouldKeepAlive = false;
    if (accessLog) logAccess(deps, request, response);
    const key = functionOfHost(request.headers.host ?? "");
    if (key === undefined) {
      metrics.observe(undefined, 404, 0);
      return sendAnswer(request, response, unknownHost(request.headers.host));
    }
    // Without routes yet, everything would be unknown.
    if (!isReady) await Promise.race([ready, sleep(clock, settings.readyWaitMs)]);
    if (!isReady) return sendAnswer(request, response, routesUnknown);
    await new Exchange(deps, key, request, response, upgrade).run();
  };
  const guarded = (...[request, response, upgrade]: Parameters<typeof handle>) => {
    handle(request, response, upgrade).catch((error: unknown) => {
      log.error({ host: request.headers.host, error: messageOf(error) }, "handling a request");
      response.destroy();
    });
  };
  const server = http.createServer({
    headersTimeout: headersTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    requestTimeout: settings.idleTimeoutMs,
    shouldUpgradeCallback: isTunnelRequest,
    // A peer that is gone without a word is found, also under a quiet tunnel.
    keepAlive: true,
    keepAliveInitialDelay: headersTimeoutMs,
  });
  server.maxConnections = maxConnections;
  // Nobody reads, nobody writes.
  server.timeout = settings.idleTimeoutMs;
  server.on("request", (request, response) => guarded(request, response));
  // Expect: 100-continue is answered once it is known that somebody will read the body.
  server.on("checkContinue", (request, response) => guarded(request, response));
  server.on("upgrade", (request: http.IncomingMessage, socket: Socket, head: Buffer) => {
    guarded(request, responseOn(socket, request), { socket, head });
    upgraded(server).add(socket);
    socket.once("close", () => upgraded(server).delete(socket));
  });
  server.on("connect", (_request, socket: Socket) => refuse(socket, noConnect));
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) return socket.destroy();
    refuse(socket, malformed[error.code ?? ""] ?? badRequest);
  });
  return server;
}

/** HTTP/2 over clear text is offered by some clients with any request, and may be left unanswered. */
function isTunnelRequest({ method, headers }: http.IncomingMessage): boolean {
  const hasBody = headers["content-length"] !== undefined || "transfer-encoding" in headers;
  return method === "GET" && !hasBody && !/\bh2c?\b/i.test(headers.upgrade ?? "");
}

/** The server has let go of the socket: any answer but 101 is written by a response of our own. */
function responseOn(socket: Socket, request: http.IncomingMessage): http.ServerResponse {
  const response = new http.ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once("finish", () => socket.end());
  socket.on("drain", () => response.emit("drain"));
  socket.on("error", () => socket.destroy());
  return response;
}

const noConnect: Answer = {
  status: 405,
  reason: "MethodNotAllowed",
  message: "this is no forward proxy",
};
const badRequest: Answer = { status: 400, reason: "BadRequest", message: "this is not HTTP/1.1" };
const malformed: Record<string, Answer> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: "HeadersTooLarge",
    message: "the request's headers are larger than 16 KiB",
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    reason: "RequestTimeout",
    message: "the request took too long to arrive",
  },
};

/** The last words on a connection. Closing at once could take them away from a client still sending. */
function refuse(socket: Socket, answer: Answer): void {
  socket.on("error", () => socket.destroy());
  socket.setTimeout(lingerMs, () => socket.destroy());
  socket.end(rawAnswer(answer));
}

function logAccess(
  { log, clock }: ExchangeDeps,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): void {
  const startedAt = clock.now();
  const { method, url, headers } = request;
  response.once("close", () => {
    const ms = clock.now() - startedAt;
    log.info({ method, host: headers.host, url, status: response.statusCode, ms }, "request");
  });
}

function adminPage(
  url: string,
  metrics: GatewayMetrics,
  isReady: boolean,
): { status: number; body: string } {
  if (url === "/metrics") return { status: 200, body: metrics.render() };
  if (url === "/healthz") return { status: 200, body: "ok\n" };
  if (url === "/readyz")
    return { status: isReady ? 200 : 503, body: isReady ? "ok\n" : "waiting\n" };
  return { status: 404, body: "there are /metrics, /healthz and /readyz\n" };
}

function listening(server: http.Server, address: { host: string; port: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(address.port, address.host, () => {
      server.off("error", reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

const tunnels = new WeakMap<http.Server, Set<Socket>>();

/** Sockets that the server has handed over and no longer closes itself. */
function upgraded(server: http.Server): Set<Socket> {
  let sockets = tunnels.get(server);
  if (!sockets) tunnels.set(server, (sockets = new Set()));
  return sockets;
}

function drain(server: http.Server, ms: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const cancelCut = clock.after(ms, () => {
      server.closeAllConnections();
      for (const socket of upgraded(server)) socket.destroy();
    });
    let cancelSweep = () => {};
    // Connections become idle one by one, as the requests on them end.
    const sweep = () => {
      server.closeIdleConnections();
      cancelSweep = clock.after(sweepMs, sweep);
    };
    server.close(() => {
      cancelCut();
      cancelSweep();
      resolve();
    });
    sweep();
  });
}
