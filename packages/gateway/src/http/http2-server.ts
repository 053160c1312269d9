import * as http2 from "node:http2";
import { type ReadableOptions } from "node:stream";
import { type Socket } from "node:net";
import { type Clock } from "@spry/kube";
import { maxHeadBytes } from "../attempt/backend.ts";
import { type ClientRequest, type ClientResponse } from "./client-side.ts";
import { ConnectionShares } from "./connection-shares.ts";

export interface Http2ServerOptions {
  handle: (request: ClientRequest, response: ClientResponse) => void;
  clock: Clock;
  /** For a request's whole head, and between requests. */
  quietMs: number;
  /** Without a byte in either direction. */
  idleTimeoutMs: number;
  /** Requests under way, of all connections, and of those from one address: as HTTP/1.1 has connections. */
  maxRequests: number;
  maxRequestsOfAddress: number;
}

export interface Http2Server {
  /** Takes a connection on which TLS has agreed on `h2`, or that begins with the preface. */
  accept(socket: Socket): void;
  /** Connections end with the requests that are under way on them. */
  leave(): void;
}

const settings = {
  maxConcurrentStreams: 100,
  // Of a client that has agreed to it, what exceeds it is reset; of others, it is refused (request-head.ts).
  maxHeaderListSize: maxHeadBytes,
  // Of each request's body, so much is read ahead.
  initialWindowSize: 64 * 1024,
  enableConnectProtocol: false,
};
/** All bodies of a connection together. */
const connectionWindow = 1024 ** 2;
/** Limits on cheap attacks: too many frames that are reset, refused, malformed or never answered end the connection. */
const bounds = {
  maxHeaderListPairs: 500,
  streamResetBurst: 200,
  streamResetRate: 20,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  maxOutstandingPings: 10,
  maxSettings: 32,
  // MiB: streams, header tables, and frames that wait to be sent.
  maxSessionMemory: 10,
};

/**
 * HTTP/2 for clients over TLS, and over clear text for those that begin with it. Its requests and responses have the same interface as those of HTTP/1.1; upgrades are
 * not offered (RFC 8441), so WebSockets use HTTP/1.1.
 */
export function createHttp2Server(options: Http2ServerOptions): Http2Server {
  const { handle, clock, quietMs, idleTimeoutMs } = options;
  const sessions = new Set<http2.ServerHttp2Session>();
  /** What they run on: their own `socket` is another object. */
  const sockets = new WeakMap<http2.Http2Session, Socket>();
  let accepted: Socket | undefined;
  let isLeaving = false;
  const server = http2.createServer({ settings, ...bounds, Http2ServerRequest: Request });
  const shares = new ConnectionShares(options.maxRequestsOfAddress);
  let underWay = 0;
  const serve = (request: Request, response: http2.Http2ServerResponse) => {
    const { stream } = request;
    const { remoteAddress } = request.socket;
    const once = (event: "close", listener: () => void) => stream.once(event, listener);
    if (underWay >= options.maxRequests || !shares.admit({ remoteAddress, once }))
      return stream.close(http2.constants.NGHTTP2_REFUSED_STREAM);
    underWay++;
    const socket = stream.session && sockets.get(stream.session);
    if (socket) request.connectionSocket = socket;
    stream.once("close", () => underWay--);
    return handle(request, new Response(response));
  };
  server.on("request", serve);
  server.on("checkContinue", serve);
  server.on("session", (session) => {
    sessions.add(session);
    if (accepted) sockets.set(session, accepted);
    let open = 0;
    const wait = () => clock.after(quietMs, () => session.close());
    let stopWaiting = wait();
    session.once("close", () => {
      sessions.delete(session);
      stopWaiting();
    });
    session.setLocalWindowSize(connectionWindow);
    session.setTimeout(idleTimeoutMs, () => session.destroy());
    // The client notices failures itself.
    session.on("error", () => session.destroy());
    session.on("stream", (stream) => {
      stopWaiting();
      open++;
      stream.on("error", () => {});
      stream.once("close", () => {
        if (--open > 0 || session.closed) return;
        stopWaiting = wait();
      });
      if (isLeaving) session.close();
    });
  });
  return {
    accept(socket) {
      accepted = socket;
      server.emit("connection", socket);
      accepted = undefined;
    },
    leave() {
      isLeaving = true;
      for (const session of sessions) session.close();
    },
  };
}

/** With the headers of HTTP/1.1: `host` instead of `:authority`, and one `cookie` (RFC 9113, section 8.2.3). */
class Request extends http2.Http2ServerRequest {
  connectionSocket: Socket | undefined;

  constructor(
    stream: http2.ServerHttp2Stream,
    headers: http2.IncomingHttpHeaders,
    options: ReadableOptions,
    rawHeaders: readonly string[],
  ) {
    const { ":authority": authority, host } = headers;
    const isSame = authority !== undefined && host === authority;
    const raw: string[] = [];
    const cookies: string[] = [];
    if (authority !== undefined) raw.push("host", authority);
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      const [name = "", value = ""] = rawHeaders.slice(i, i + 2);
      if (name.startsWith(":") || (isSame && name === "host")) continue;
      if (name === "cookie") cookies.push(value);
      else raw.push(name, value);
    }
    if (cookies.length > 0) raw.push("cookie", cookies.join("; "));
    headers.host = authority ?? host ?? "";
    super(stream, headers, options, raw);
  }
}

class Response implements ClientResponse {
  shouldKeepAlive = true;
  readonly #response: http2.Http2ServerResponse;

  constructor(response: http2.Http2ServerResponse) {
    this.#response = response;
  }

  get statusCode(): number {
    return this.#response.statusCode;
  }

  get headersSent(): boolean {
    return this.#response.headersSent;
  }

  get destroyed(): boolean {
    const { stream } = this.#response;
    return stream.destroyed || stream.closed;
  }

  writeHead(status: number, headers: http2.OutgoingHttpHeaders | string[]): this {
    if (!Array.isArray(headers)) {
      // Of one connection; HTTP/2 has none of these.
      const { connection: _, ...rest } = headers;
      this.#response.writeHead(status, rest);
    } else this.#response.writeHead(status, headers as unknown as http2.OutgoingHttpHeaders);
    return this;
  }

  /** `writeHead` has sent them. */
  flushHeaders(): void {}

  respondWhole(status: number, headers: string[]): void {
    const response = this.#response;
    response.statusCode = status;
    for (let i = 0; i + 1 < headers.length; i += 2) {
      const [name = "", value = ""] = headers.slice(i, i + 2);
      response.appendHeader(name, value);
    }
    response.end();
  }

  write(chunk: Buffer): boolean {
    return this.#response.write(chunk);
  }

  addTrailers(trailers: http2.OutgoingHttpHeaders): void {
    this.#response.addTrailers(trailers);
  }

  end(body?: string, encoding: "utf8" | "latin1" = "utf8"): void {
    if (body === undefined) this.#response.end();
    else this.#response.end(body, encoding);
  }

  writeContinue(): void {
    this.#response.writeContinue();
  }

  writeEarlyHints(hints: Record<string, string | string[]>): void {
    this.#response.writeEarlyHints(hints);
  }

  destroy(): void {
    const { stream } = this.#response;
    if (!stream.destroyed) stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
  }

  once(event: "close" | "drain", listener: () => void): void {
    this.#response.once(event, listener);
  }
}
