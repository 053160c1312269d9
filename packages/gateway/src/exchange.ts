import { type IncomingMessage, type ServerResponse } from "node:http";
import { type Socket } from "node:net";
import { type Duplex } from "node:stream";
import { type Function } from "@spry/function";
import { type Clock, type Informer, type Logger, messageOf, type ObjectKey } from "@spry/kube";
import type { Dispatcher } from "undici";
import {
  type Answer,
  bodyTooLarge,
  overloaded,
  sendAnswer,
  unknownFunction,
  upstreamFailed,
  upstreamTimeout,
  upstreamUnreachable,
} from "./answer.ts";
import { explain } from "./explanation.ts";
import { requestHeaders, responseHeaders } from "./forwarded-headers.ts";
import { type GatewayMetrics } from "./metrics.ts";
import { collectBody, maxRepeatableBytes, RequestBody } from "./request-body.ts";
import { type RouteTable } from "./route-table.ts";
import { joinTunnel } from "./tunnel.ts";
import { type Connection, type Upstream, type UpstreamSettings } from "./upstream.ts";

export interface ExchangeSettings extends UpstreamSettings {
  /** How long a request waits for a Function whose first version is on the way. */
  readyWaitMs: number;
  maxWaiting: number;
  maxRequestBytes: number;
  trustForwarded: boolean;
}

export interface ExchangeDeps {
  routes: RouteTable;
  functions: Informer<Function>;
  settings: ExchangeSettings;
  metrics: GatewayMetrics;
  clock: Clock;
  log: Logger;
}

/** The client's side of a tunnel: what an `Upgrade` request arrived on. */
export interface UpgradeSocket {
  socket: Socket;
  head: Buffer;
}

/** How long other addresses are tried after the first failure, and waited for when a Pod is lost. */
const patienceMs = 1_000;
/** How long a client may go on sending a body that nobody reads. */
const restMs = 1_000;
/** Between looks at addresses that are all suspect. */
const suspectPauseMs = 25;
/** A request whose connection broke is sent once more, to keep one that kills Pods from killing all. */
const maxBreaks = 1;
/**
 * A Pod that ends closes its idle connections; a request that met such a close knows within a round
 * trip. Later than this the Pod may well have been killed in the middle of handling it.
 */
const staleWithinMs = 1_000;

const idempotent = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"]);

/**
 * One request's way to a Pod and its answer's way back: undici calls the `on…` methods. It is sent
 * again, as long as no byte of an answer has come, when that cannot do anything twice:
 *
 * - the connection was never made: always;
 * - the connection broke: an idempotent request on a connection that had been kept alive, or any
 *   request to a Pod that was no longer among the Function's addresses, if it broke at once.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #deps: ExchangeDeps;
  readonly #key: ObjectKey;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #upgrade: UpgradeSocket | undefined;
  readonly #arrivedAt: number;
  #body: Buffer | RequestBody | undefined;
  #upstream: Upstream | undefined;
  #connection: Connection | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #sentAt = 0;
  #wasReused = false;
  #isAnswered = false;
  #isOver = false;
  #firstFailureAt = 0;
  #breaks = 0;

  constructor(
    deps: ExchangeDeps,
    key: ObjectKey,
    request: IncomingMessage,
    response: ServerResponse,
    upgrade?: UpgradeSocket,
  ) {
    this.#deps = deps;
    this.#key = key;
    this.#request = request;
    this.#response = response;
    this.#upgrade = upgrade;
    this.#arrivedAt = deps.clock.now();
    (upgrade?.socket ?? response).once("close", () => this.#clientClosed());
  }

  async run(): Promise<void> {
    const { headers } = this.#request;
    const { maxRequestBytes } = this.#deps.settings;
    const length = Number(headers["content-length"] ?? 0);
    if (length > maxRequestBytes) return this.#answer(bodyTooLarge(maxRequestBytes));
    const upstream = this.#deps.routes.pick(this.#key) ?? (await this.#waitForUpstream());
    if (!upstream) return;
    if (headers.expect !== undefined) this.#response.writeContinue();
    if (length > 0 && length <= maxRepeatableBytes) {
      this.#body = await collectBody(this.#request);
      // Its end says nothing new to the Pod: a client that went away has been noticed elsewhere.
      if (this.#body === undefined) return;
    } else if (length > 0 || headers["transfer-encoding"] !== undefined) {
      this.#body = new RequestBody(this.#request, maxRequestBytes);
    }
    this.#send(upstream);
  }

  /** Answers, and returns undefined, when waiting is in vain. */
  async #waitForUpstream(): Promise<Upstream | undefined> {
    const { routes, settings, metrics } = this.#deps;
    if (metrics.waiting >= settings.maxWaiting) {
      this.#answer(overloaded(this.#key));
      return undefined;
    }
    metrics.waiting++;
    try {
      while (!this.#isOver) {
        const upstream = routes.pick(this.#key);
        if (upstream) return upstream;
        const waitMs = this.#patience();
        if (waitMs === 0) return undefined;
        await routes.changed(this.#key, waitMs);
      }
      return undefined;
    } finally {
      metrics.waiting--;
    }
  }

  /** How long a change is worth waiting for; answers, and is 0, when it no longer is. */
  #patience(): number {
    const { routes, functions, settings, clock } = this.#deps;
    const now = clock.now();
    if (routes.hasUpstreams(this.#key)) {
      const left = (this.#firstFailureAt || this.#arrivedAt) + patienceMs - now;
      if (left > 0) return Math.min(left, suspectPauseMs);
      this.#answer(upstreamUnreachable(this.#key));
      return 0;
    }
    const fn = functions.get(this.#key);
    if (!fn && !routes.has(this.#key)) {
      const namespace = this.#key.slice(0, this.#key.indexOf("/"));
      const nearby = functions.byIndex("namespace", namespace).length > 0;
      this.#answer(unknownFunction(this.#key, nearby));
      return 0;
    }
    const { reason, message, state } = fn
      ? explain(fn)
      : {
          reason: "NoReadyEndpoint",
          message: `${this.#key} has no Pod that is ready`,
          state: "absent",
        };
    const patience = { deploying: settings.readyWaitMs, absent: patienceMs, failed: 0 }[state] ?? 0;
    const left = this.#arrivedAt + patience - now;
    if (left > 0) return left;
    this.#answer({ status: 503, reason, message, headers: { "retry-after": "1" } });
    return 0;
  }

  #send(upstream: Upstream): void {
    if (this.#isOver) return;
    if (upstream.isFull) return this.#answer(overloaded(this.#key));
    this.#upstream = upstream;
    this.#controller = undefined;
    const connection = (this.#connection = upstream.take());
    const { method = "GET", url = "/", headers } = this.#request;
    const body = this.#body instanceof RequestBody ? this.#body.open() : (this.#body ?? null);
    connection.client.dispatch(
      {
        method,
        path: pathOf(url),
        headers: requestHeaders(this.#request, this.#deps.settings.trustForwarded),
        body,
        ...(this.#upgrade ? { upgrade: headers.upgrade ?? "websocket" } : {}),
      },
      this,
    );
  }

  /** The request is about to be written to a connection. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    const connection = this.#connection;
    if (this.#isOver || !connection) return controller.abort(new Error("client closed"));
    this.#controller = controller;
    this.#sentAt = this.#deps.clock.now();
    this.#wasReused = connection.carried++ > 0;
  }

  /** The first byte of an answer: from here on nothing is sent again. */
  onResponseStarted(): void {
    this.#isAnswered = true;
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Parameters<NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>>[2],
  ): void {
    const response = this.#response;
    if (status < 200) {
      if (status === 103 && headers.link) response.writeEarlyHints({ link: headers.link });
      return;
    }
    response.writeHead(status, responseHeaders(headers));
    response.on("drain", () => controller.resume());
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#response.write(chunk)) controller.pause();
  }

  onResponseEnd(
    _controller: unknown,
    trailers: Record<string, string | string[] | undefined>,
  ): void {
    this.#release(true);
    const names = Object.keys(trailers);
    if (names.length > 0) this.#response.addTrailers(trailers);
    this.#response.end();
    this.#finish(this.#response.statusCode);
    if (!this.#request.complete) this.#readRest();
  }

  /**
   * The Pod has answered without reading everything. The client may not look for its answer before
   * it has sent everything, but not without bounds.
   */
  #readRest(): void {
    const { socket } = this.#request;
    if (this.#body instanceof RequestBody) this.#body.close();
    const cancel = this.#deps.clock.after(restMs, () => socket.destroy());
    this.#request.once("end", cancel).resume();
  }

  onRequestUpgrade(
    _controller: unknown,
    status: number,
    headers: Parameters<typeof responseHeaders>[0],
    socket: Duplex,
  ): void {
    this.#release(false);
    const upgrade = this.#upgrade;
    if (!upgrade || this.#isOver) return void socket.destroy();
    this.#finish(status);
    this.#response.detachSocket(upgrade.socket);
    joinTunnel(upgrade, socket as Socket, status, headers);
  }

  onResponseError(_controller: unknown, error: Error): void {
    const upstream = this.#upstream;
    const wasSent = this.#controller !== undefined;
    this.#release(false);
    if (this.#isOver || !upstream) return;
    if (this.#body instanceof RequestBody && this.#body.isTooLarge) {
      return this.#answer(bodyTooLarge(this.#deps.settings.maxRequestBytes));
    }
    if (!this.#isAnswered && this.#mayRepeat(error, upstream, wasSent)) {
      return this.#repeat(upstream, wasSent);
    }
    this.#deps.log.debug({ function: this.#key, error: messageOf(error) }, "request failed");
    this.#answer(this.#failure(error, wasSent));
  }

  #mayRepeat(error: Error, upstream: Upstream, wasSent: boolean): boolean {
    const code = codeOf(error);
    if (code === "UND_ERR_INVALID_ARG" || code === "UND_ERR_NOT_SUPPORTED") return false;
    if (this.#body instanceof RequestBody && !this.#body.isRepeatable) return false;
    if (!wasSent) return true;
    if (!brokenConnection.has(code) || this.#breaks >= maxBreaks) return false;
    const atOnce = this.#deps.clock.now() - this.#sentAt < staleWithinMs;
    if (upstream.retired) return atOnce;
    return this.#wasReused && idempotent.has(this.#request.method ?? "");
  }

  #repeat(upstream: Upstream, wasSent: boolean): void {
    const { routes, metrics, clock } = this.#deps;
    metrics.repeated++;
    this.#firstFailureAt ||= clock.now();
    if (wasSent) this.#breaks++;
    else upstream.suspect();
    const next = routes.pick(this.#key);
    if (next) return this.#send(next);
    void this.#waitForUpstream().then((found) => found && this.#send(found));
  }

  #failure(error: Error, wasSent: boolean): Answer {
    const code = codeOf(error);
    if (code === "UND_ERR_INVALID_ARG" || code === "UND_ERR_NOT_SUPPORTED") {
      return {
        status: 400,
        reason: "BadRequest",
        message: `the request is malformed: ${error.message}`,
      };
    }
    if (code === "UND_ERR_HEADERS_TIMEOUT") {
      return upstreamTimeout(this.#key, this.#deps.settings.upstreamTimeoutMs);
    }
    return wasSent ? upstreamFailed(this.#key) : upstreamUnreachable(this.#key);
  }

  /** An answer of our own; when the Pod's has begun, all that is left is to break it off visibly. */
  #answer(answer: Answer): void {
    if (this.#isOver) return;
    if (this.#response.headersSent) {
      this.#response.destroy();
      return this.#finish(502);
    }
    sendAnswer(this.#request, this.#response, answer);
    this.#finish(answer.status);
  }

  #clientClosed(): void {
    if (this.#isOver) return;
    this.#finish(499);
    this.#controller?.abort(new Error("client closed the connection"));
  }

  #release(reusable: boolean): void {
    if (this.#connection) this.#upstream?.release(this.#connection, reusable);
    this.#connection = undefined;
  }

  #finish(status: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { metrics, clock } = this.#deps;
    metrics.observe(this.#key, status, (clock.now() - this.#arrivedAt) / 1000);
  }
}

/** Errors of a connection that was there and ended; all others are the request's or the answer's. */
const brokenConnection = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);

function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}

/** A proxy's request line may hold a whole URL; the Pod is asked for its path. */
function pathOf(url: string): string {
  if (url.startsWith("/")) return url;
  const path = /^https?:\/\/[^/?#]*([^#]*)/i.exec(url)?.[1];
  if (path === undefined) return url;
  return path.startsWith("/") ? path : `/${path}`;
}
