import * as http from "node:http";
import { type Socket } from "node:net";
import { messageOf, sleep } from "@spry/kube";
import { type Answer, rawAnswer, routesUnknown, sendAnswer, unknownHost } from "./answer.ts";
import { Exchange, type ExchangeDeps, type UpgradeSocket } from "./exchange.ts";
import { functionOfHost } from "./host.ts";
import { isModern, readHead } from "./request-head.ts";
import { maxHeadBytes } from "./upstream.ts";

export interface FrontServer {
  server: http.Server;
  /** Sockets of upgraded connections, which the server no longer knows. */
  tunnels: ReadonlySet<Socket>;
  /** From now on each answer is the last of its connection. */
  leave(): void;
}

/** Load balancers reuse connections for a minute; the side further back must not close first. */
const keepAliveTimeoutMs = 65_000;
const keepAliveProbeMs = 60_000;
/** How often connections are looked over for heads and requests that take too long. */
const overdueCheckMs = 5_000;
const maxConnections = 20_000;
/** How long a client that is turned away may go on sending. */
const lingerMs = 100;

/** The server that clients talk to: each request becomes an `Exchange`, unless its host means none. */
export function createFrontServer(
  deps: ExchangeDeps,
  ready: Promise<void>,
  accessLog: boolean,
): FrontServer {
  const { metrics, settings, clock, log } = deps;
  const tunnels = new Set<Socket>();
  /** Connections whose last request has been refused: what else comes on them is not looked at. */
  const refused = new WeakSet<Socket>();
  let isReady = false;
  let isLeaving = false;
  void ready.then(() => (isReady = true));
  const handle = async (
    request: http.IncomingMessage,
    response: http.ServerResponse,
    upgrade?: UpgradeSocket,
  ) => {
    metrics.active++;
    (upgrade?.socket ?? response).once("close", () => metrics.active--);
    if (isLeaving) response.shouldKeepAlive = false;
    // Node.js would, for one that asks for it with `TE: chunked`.
    if (!isModern(request)) response.useChunkedEncodingByDefault = false;
    if (accessLog) logAccess(deps, request, response);
    const head = readHead(request);
    const key = "status" in head ? undefined : functionOfHost(head.host);
    if ("status" in head || key === undefined) {
      const answer = "status" in head ? head : unknownHost(head.host);
      metrics.observe(undefined, answer.status, 0);
      if ("status" in head) refused.add(request.socket);
      return sendAnswer(request, response, answer);
    }
    // Without routes yet, everything would be unknown.
    if (!isReady) await Promise.race([ready, sleep(clock, settings.readyWaitMs)]);
    if (!isReady) return sendAnswer(request, response, routesUnknown);
    await new Exchange(deps, key, head, request, response, upgrade).run();
  };
  const guarded = (...[request, response, upgrade]: Parameters<typeof handle>) => {
    handle(request, response, upgrade).catch((error: unknown) => {
      log.error({ host: request.headers.host, error: messageOf(error) }, "handling a request");
      response.destroy();
    });
  };
  const server = http.createServer({
    maxHeaderSize: maxHeadBytes,
    headersTimeout: settings.headTimeoutMs,
    connectionsCheckingInterval: Math.min(overdueCheckMs, settings.headTimeoutMs),
    // Said in our own words.
    requireHostHeader: false,
    keepAliveTimeout: keepAliveTimeoutMs,
    requestTimeout: settings.idleTimeoutMs,
    shouldUpgradeCallback: isTunnelRequest,
    // A peer that is gone without a word is found, also under a quiet tunnel.
    keepAlive: true,
    keepAliveInitialDelay: keepAliveProbeMs,
  });
  // Their size is the bound, not their number.
  server.maxHeadersCount = 0;
  server.maxConnections = maxConnections;
  // Nobody reads, nobody writes.
  server.timeout = settings.idleTimeoutMs;
  server.on("request", (request, response) => guarded(request, response));
  // Expect: 100-continue is answered once it is known that somebody will read the body.
  server.on("checkContinue", (request, response) => guarded(request, response));
  server.on("upgrade", (request: http.IncomingMessage, socket: Socket, head: Buffer) => {
    guarded(request, responseOn(socket, request), { socket, head });
    tunnels.add(socket);
    socket.once("close", () => tunnels.delete(socket));
  });
  server.on("connect", (_request, socket: Socket) => refuse(socket, noConnect));
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (refused.has(socket)) return;
    if (error.code === "ECONNRESET" || !socket.writable) return socket.destroy();
    refuse(socket, malformed[error.code ?? ""] ?? badRequest);
  });
  return { server, tunnels, leave: () => void (isLeaving = true) };
}

/** HTTP/2 over clear text is offered by some clients with any request, and may be left unanswered. */
function isTunnelRequest(request: http.IncomingMessage): boolean {
  const { method, headers } = request;
  const hasBody = headers["content-length"] !== undefined || "transfer-encoding" in headers;
  return (
    method === "GET" && isModern(request) && !hasBody && !/\bh2c?\b/i.test(headers.upgrade ?? "")
  );
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
const badRequest: Answer = {
  status: 400,
  reason: "BadRequest",
  message: "the request is malformed: this is not HTTP/1.1 as RFC 9112 has it",
};
const malformed: Record<string, Answer> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: "HeadersTooLarge",
    message: "the request's headers are larger than 32 KiB",
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
