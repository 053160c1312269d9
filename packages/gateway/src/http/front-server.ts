import * as http from "node:http";
import { type Socket } from "node:net";
import { type TLSSocket } from "node:tls";
import { BoundedConnections, connectionLimit, messageOf, noteRequest, sleep } from "@spry/kube";
import { maxHeadBytes } from "../attempt/backend.ts";
import { type Connection } from "../inside/callers.ts";
import { type Entrance } from "../inside/entrance.ts";
import { withCorsOf } from "../exposure/answers.ts";
import { exposedHost, isSecure, passExposed } from "../exposure/filters.ts";
import { Exchange } from "../request/exchange.ts";
import { indexPage } from "../pages/index-page.ts";
import { admittedHere, wantedRevision } from "../admission/peer-requests.ts";
import {
  entryFilters,
  head,
  type Outcome,
  ownHost,
  pass,
  routeFilters,
} from "../request/filters.ts";
import { type Passage, type RequestDeps, type UpgradeSocket } from "../request/passage.ts";
import { logAccess, logRefusal } from "./access-log.ts";
import {
  type ErrorResponse,
  keptAway,
  rawErrorResponse,
  routesUnknown,
  sendErrorResponse,
  withRequestId,
} from "./error-response.ts";
import { type ClientRequest, type ClientResponse } from "./client-side.ts";
import { createHttp2Server } from "./http2-server.ts";
import { createProtocolChoice } from "./preface.ts";
import { headTooLarge, isModern } from "./request-head.ts";
import { printable } from "./printable.ts";
import { requestIdOf } from "./request-id.ts";
import {
  type CallAcceptor,
  isReport,
  isWaitingCall,
  nameFunction,
  type OwnNames,
  passOn,
} from "./waiting-calls.ts";

export interface FrontServerOptions {
  /** Resolves when the routes are known. */
  ready: Promise<void>;
  /** How long a request waits for that. */
  readyWaitMs: number;
  /** For a request's whole head. */
  headTimeoutMs: number;
  /** Without a byte in either direction. */
  idleTimeoutMs: number;
  /** Connections from one address; those to a Service's own are not counted. */
  maxConnectionsOfAddress: number;
  /** One line for each request. */
  accessLog: boolean;
  /** Accepts requests that may wait; undefined: they are requests like others. */
  calls: CallAcceptor | undefined;
  ownNames: OwnNames;
  /** Whether others than this machine's programs reach it. */
  isPublic: boolean;
}

export interface FrontServer {
  server: http.Server;
  /** Takes a connection that was opened to an address of a Service's own. */
  accept(socket: Socket, entrance: Entrance): void;
  /** Takes a connection whose TLS handshake is done. */
  acceptSecure(socket: TLSSocket): void;
  /** Sockets of upgraded connections, which the server no longer knows. */
  tunnels: ReadonlySet<Socket>;
  /** From now on each response is the last of its connection. */
  leave(): void;
}

/** Load balancers reuse connections for a minute; the side further back must not close first. */
const keepAliveTimeoutMs = 65_000;
const keepAliveProbeMs = 60_000;
/** How often connections are looked over for heads and requests that take too long. */
const overdueCheckMs = 5_000;
const maxConnections = connectionLimit(20_000, 0.3);
/** How long a client that is refused may still send. */
const lingerMs = 100;

/** The server that clients talk to: each request that passes the filters becomes an `Exchange`. */
export function createFrontServer(deps: RequestDeps, options: FrontServerOptions): FrontServer {
  const { metrics, clock, log } = deps;
  const { ready, headTimeoutMs, idleTimeoutMs } = options;
  const tunnels = new Set<Socket>();
  /** Connections whose last request has been refused: what else is received on them is ignored. */
  const refused = new WeakSet<Socket>();
  /** Connections that have had their last request: no other begins on them. */
  const finished = new WeakSet<Socket>();
  const entrances = new WeakMap<Socket, Entrance>();
  let insideConnections = 0;
  let isReady = false;
  let isLeaving = false;
  void ready.then(() => (isReady = true));
  const reject = (passage: Passage, error: ErrorResponse) => {
    metrics.observe(passage.route?.key, error.status, 0);
    const { exposed, request, response, isPublic } = passage;
    if (exposed) logRefusal(deps, passage, error.status);
    const answer = withRequestId(withCorsOf(error, exposed), passage.requestId);
    sendErrorResponse(request, response, answer, isPublic || exposed !== undefined);
  };
  /** What another gateway has found to be in order. */
  const admit = async (passage: Passage) => {
    passage.key = passage.peerRevision ?? "";
    const error = pass([head, admittedHere], passage, deps);
    if (!error && passage.destination)
      return await new Exchange(deps, passage, passage.destination).run();
    if (error && error !== "handled") reject(passage, error);
  };
  const handle = async (
    request: ClientRequest,
    response: ClientResponse,
    upgrade?: UpgradeSocket,
  ) => {
    if (finished.has(request.socket) || refused.has(request.socket)) return;
    metrics.active++;
    (upgrade?.socket ?? response).once("close", () => metrics.active--);
    const connection = request.connectionSocket ?? request.socket;
    const entrance = insideConnections > 0 ? entrances.get(connection) : undefined;
    if (isLeaving || entrance?.isLeaving) response.shouldKeepAlive = false;
    if (!response.shouldKeepAlive) finished.add(request.socket);
    const passage: Passage = {
      request,
      response,
      upgrade,
      requestId: requestIdOf(request),
      // Callers inside may be of another namespace.
      isPublic: options.isPublic || entrance !== undefined,
      host: "",
      path: "",
      prefix: "",
      key: entrance?.service ?? "",
      isExternal: entrance === undefined,
      peerRevision: wantedRevision(request, deps),
      isSecure: isSecure(request),
      exposed: undefined,
      route: undefined,
      destination: undefined,
    };
    if (options.accessLog) logAccess(deps, passage);
    if (passage.peerRevision !== undefined) return await admit(passage);
    const malformed = pass(entryFilters, passage, deps);
    if (malformed === "handled") return;
    if (malformed) {
      if (malformed.headers?.["connection"] === "close") refused.add(request.socket);
      return reject(passage, malformed);
    }
    // Without routes yet, everything would be unknown.
    if (!isReady) await Promise.race([ready, sleep(clock, options.readyWaitMs)]);
    let error: Outcome = isReady ? undefined : routesUnknown;
    if (isReady) pass([ownHost], passage, deps);
    error ??= isReady ? indexPage(passage, deps) : undefined;
    const { calls, ownNames } = options;
    const mayWait = calls !== undefined && !upgrade && isWaitingCall(passage, ownNames);
    if (mayWait) nameFunction(passage, ownNames);
    if (!error && !entrance && !(mayWait && isReport(passage, ownNames))) {
      error = exposedHost(passage, deps);
      // Others continue at once.
      if (!error && passage.exposed) error = await passExposed(passage, deps);
      if (response.destroyed) return;
    }
    // What an APIRule exposes is open to everyone whom its rules admit.
    const refusal = error || passage.exposed ? undefined : refusalOf(passage, deps, connection);
    if (refusal) error = await refusal;
    if (!error && mayWait) {
      error = await passOn(passage, deps, calls);
      if (!error) return;
    }
    error ??= pass(routeFilters, passage, deps);
    if (error === "handled") return;
    if (error || !passage.destination) return reject(passage, error ?? routesUnknown);
    await new Exchange(deps, passage, passage.destination).run();
  };
  const connections = new BoundedConnections({
    total: maxConnections,
    ofAddress: options.maxConnectionsOfAddress,
  });
  const guarded = (...[request, response, upgrade]: Parameters<typeof handle>) => {
    const connection = request.connectionSocket ?? request.socket;
    if (upgrade) connections.began(connection);
    else noteRequest(connections, request, response, connection);
    handle(request, response, upgrade).catch((error: unknown) => {
      const host = printable(request.headers.host ?? "");
      log.error({ host, error: messageOf(error) }, "handling a request");
      response.destroy();
    });
  };
  const server = http.createServer({
    maxHeaderSize: maxHeadBytes,
    headersTimeout: headTimeoutMs,
    connectionsCheckingInterval: Math.min(overdueCheckMs, headTimeoutMs),
    // Refused with a message of the gateway's own.
    requireHostHeader: false,
    keepAliveTimeout: keepAliveTimeoutMs,
    requestTimeout: idleTimeoutMs,
    shouldUpgradeCallback: isTunnelRequest,
    // A peer that has disconnected without closing its connection is detected, also under a quiet tunnel.
    keepAlive: true,
    keepAliveInitialDelay: keepAliveProbeMs,
  });
  // Their size is the bound, not their number.
  server.maxHeadersCount = 0;
  // Neither side reads or writes.
  server.timeout = idleTimeoutMs;
  const second = createHttp2Server({
    handle: guarded,
    clock,
    quietMs: headTimeoutMs,
    idleTimeoutMs,
    maxRequests: maxConnections,
    maxRequestsOfAddress: options.maxConnectionsOfAddress,
  });
  // What the server does with a connection comes after it is known that it is one of HTTP/1.1.
  const [acceptFirst] = server.listeners("connection") as [(socket: Socket) => void];
  server.removeAllListeners("connection");
  const { choose, undecided } = createProtocolChoice(
    {
      first: (socket) => acceptFirst.call(server, socket),
      second: (socket) => second.accept(socket),
    },
    clock,
    headTimeoutMs,
  );
  server.on("connection", (socket: Socket) => {
    if (!entrances.has(socket) && !connections.admit(socket)) socket.destroy();
    else if ("encrypted" in socket) acceptFirst.call(server, socket);
    else choose(socket);
  });
  const plainly = (request: http.IncomingMessage, response: http.ServerResponse) => {
    // Node.js would, for a client that sends `TE: chunked`.
    if (!isModern(request)) response.useChunkedEncodingByDefault = false;
    guarded(request, response);
  };
  server.on("request", plainly);
  // Expect: 100-continue is answered once it is certain that the body will be read.
  server.on("checkContinue", plainly);
  server.on("upgrade", (request: http.IncomingMessage, socket: Socket, head: Buffer) => {
    const response = responseOn(socket, request);
    guarded(request, response, { socket, head, detach: () => response.detachSocket(socket) });
    tunnels.add(socket);
    socket.once("close", () => tunnels.delete(socket));
  });
  server.on("connect", (_request, socket: Socket) => refuse(socket, noConnect));
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (refused.has(socket)) return;
    // Data behind the last request: its response ends the connection.
    if (error.code === "HPE_CLOSED_CONNECTION") return;
    if (error.code === "ECONNRESET" || !socket.writable) return socket.destroy();
    refuse(socket, malformed[error.code ?? ""] ?? badRequest);
  });
  return {
    server,
    tunnels,
    leave() {
      isLeaving = true;
      second.leave();
      for (const socket of undecided) socket.destroy();
    },
    acceptSecure(socket) {
      if (socket.alpnProtocol !== "h2") server.emit("connection", socket);
      else if (connections.admit(socket)) second.accept(socket);
      else socket.destroy();
    },
    accept(socket, entrance) {
      if (insideConnections >= maxConnections) {
        socket.destroy();
        return;
      }
      insideConnections++;
      socket.once("close", () => insideConnections--);
      entrances.set(socket, entrance);
      server.emit("connection", socket);
    },
  };
}

/**
 * Why a caller inside the cluster may not call what it has dialled, or what its `Host` names; without a policy about it, a
 * request goes on at once.
 */
function refusalOf(
  { key, isExternal }: Passage,
  { routes, callers }: RequestDeps,
  connection: Connection,
) {
  const route = routes.find(key)?.key ?? key;
  const may = isExternal
    ? callers.mayCallFront(route, connection)
    : callers.mayCall(route, connection);
  if (may === true) return undefined;
  return Promise.resolve(may).then((isAdmitted) => (isAdmitted ? undefined : keptAway));
}

/** HTTP/2 over clear text is offered by some clients with any request, and may be ignored (RFC 9113 section 3.1). */
function isTunnelRequest(request: http.IncomingMessage): boolean {
  const { method, headers } = request;
  const hasBody = headers["content-length"] !== undefined || "transfer-encoding" in headers;
  return (
    method === "GET" && isModern(request) && !hasBody && !/\bh2c?\b/i.test(headers.upgrade ?? "")
  );
}

/** The server has handed over the socket: any response but 101 is written by an object of our own. */
function responseOn(socket: Socket, request: http.IncomingMessage): http.ServerResponse {
  const response = new http.ServerResponse(request);
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once("finish", () => socket.end());
  socket.on("drain", () => response.emit("drain"));
  socket.on("error", () => socket.destroy());
  return response;
}

const noConnect: ErrorResponse = {
  status: 405,
  reason: "MethodNotAllowed",
  message: "the gateway is not a forward proxy: CONNECT is not supported",
};
const badRequest: ErrorResponse = {
  status: 400,
  reason: "BadRequest",
  message: "malformed request: not HTTP/1.1 as specified in RFC 9112",
};
const malformed: Record<string, ErrorResponse> = {
  HPE_HEADER_OVERFLOW: headTooLarge,
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    reason: "RequestTimeout",
    message: "the request exceeded its time limit before it was received completely",
  },
};

/** The last response on a connection. Closing at once could keep it from a client that is still sending. */
function refuse(socket: Socket, error: ErrorResponse): void {
  socket.on("error", () => socket.destroy());
  socket.setTimeout(lingerMs, () => socket.destroy());
  socket.end(rawErrorResponse(error));
}
