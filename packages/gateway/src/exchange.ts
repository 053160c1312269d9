import { type IncomingMessage, type ServerResponse } from "node:http";
import { type Socket } from "node:net";
import { type Duplex } from "node:stream";
import { type Logger, messageOf, type ObjectKey } from "@spry/kube";
import type { Dispatcher } from "undici";
import {
  type Answer,
  bodyStalled,
  bodyTooLarge,
  malformedRequest,
  overloaded,
  sendAnswer,
  upstreamFailed,
  upstreamHeadTooLarge,
  upstreamTimeout,
  upstreamUnreachable,
} from "./answer.ts";
import { requestHeaders, responseHeaders } from "./forwarded-headers.ts";
import { isUnsendable, mayRepeat } from "./repeat.ts";
import { isModern, type Target } from "./request-head.ts";
import { collectBody, maxRepeatableBytes, RequestBody } from "./request-body.ts";
import { joinTunnel } from "./tunnel.ts";
import { type Connection, maxHeadBytes, Upstream, type UpstreamSettings } from "./upstream.ts";
import { awaitUpstream, type Seeker, type WaitingDeps, type WaitingSettings } from "./waiting.ts";

export interface ExchangeSettings extends UpstreamSettings, WaitingSettings {
  maxRequestBytes: number;
  /** Without a byte of a request's small body, which is read as a whole before a Pod is asked. */
  bodyStallMs: number;
  /** For a request's whole head. */
  headTimeoutMs: number;
  /** Whether what a client says in `X-Forwarded-*` and `Forwarded` is believed. */
  trustForwarded: boolean;
}

export interface ExchangeDeps extends WaitingDeps {
  settings: ExchangeSettings;
  log: Logger;
}

/** The client's side of a tunnel: what an `Upgrade` request arrived on. */
export interface UpgradeSocket {
  socket: Socket;
  head: Buffer;
}

type ResponseHeaders = Parameters<typeof responseHeaders>[0];

/** How long a client may go on sending a body that nobody reads. */
const restMs = 1_000;

/**
 * One request's way to a Pod and its answer's way back: undici calls the `on…` methods. As long as
 * no byte of an answer has come, a request that failed may be sent again (`mayRepeat`).
 */
export class Exchange implements Dispatcher.DispatchHandler, Seeker {
  readonly key: ObjectKey;
  readonly arrivedAt: number;
  firstFailureAt = 0;
  isOver = false;
  readonly #deps: ExchangeDeps;
  readonly #target: Target;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #upgrade: UpgradeSocket | undefined;
  #body: Buffer | RequestBody | undefined;
  #upstream: Upstream | undefined;
  #connection: Connection | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #sentAt = 0;
  #wasReused = false;
  #isAnswered = false;
  #breaks = 0;

  constructor(
    deps: ExchangeDeps,
    key: ObjectKey,
    target: Target,
    request: IncomingMessage,
    response: ServerResponse,
    upgrade?: UpgradeSocket,
  ) {
    this.#deps = deps;
    this.key = key;
    this.#target = target;
    this.#request = request;
    this.#response = response;
    this.#upgrade = upgrade;
    this.arrivedAt = deps.clock.now();
    this.isOver = response.destroyed;
    (upgrade?.socket ?? response).once("close", () => this.#clientClosed());
  }

  async run(): Promise<void> {
    const { headers } = this.#request;
    const { maxRequestBytes } = this.#deps.settings;
    const length = Number(headers["content-length"] ?? 0);
    if (length > maxRequestBytes) return this.#answer(bodyTooLarge(maxRequestBytes));
    // Looked for before the body is read: without one nobody would.
    let upstream = await this.#findUpstream();
    if (!upstream) return;
    if (headers.expect !== undefined && isModern(this.#request)) this.#response.writeContinue();
    if (length > 0 && length <= maxRepeatableBytes) {
      const { clock, settings } = this.#deps;
      const body = await collectBody(this.#request, clock, settings.bodyStallMs);
      if (body === "stalled") return this.#answer(bodyStalled(settings.bodyStallMs));
      if (body === undefined) return;
      this.#body = body;
      // It may have taken its time.
      if (upstream.retired) upstream = await this.#findUpstream();
      if (!upstream) return;
    } else if (length > 0 || headers["transfer-encoding"] !== undefined) {
      this.#body = new RequestBody(this.#request, maxRequestBytes);
    }
    this.#send(upstream);
  }

  /** Answers, and returns undefined, when there is none to wait for. */
  async #findUpstream(): Promise<Upstream | undefined> {
    const found = this.#deps.routes.pick(this.key) ?? (await awaitUpstream(this.#deps, this));
    if (found === undefined || found instanceof Upstream) return found;
    this.#answer(found);
    return undefined;
  }

  #send(upstream: Upstream): void {
    if (this.isOver) return;
    if (upstream.isFull) return this.#answer(overloaded(this.key));
    this.#upstream = upstream;
    this.#controller = undefined;
    const connection = (this.#connection = upstream.take());
    const { method = "GET", headers } = this.#request;
    const { host, path } = this.#target;
    const body = this.#body instanceof RequestBody ? this.#body.open() : (this.#body ?? null);
    connection.client.dispatch(
      {
        method,
        path,
        headers: requestHeaders(this.#request, host, this.#deps.settings.trustForwarded),
        body,
        ...(this.#upgrade ? { upgrade: headers.upgrade ?? "websocket" } : {}),
      },
      this,
    );
  }

  /** The request is about to be written to a connection. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    const connection = this.#connection;
    if (this.isOver || !connection) return controller.abort(new Error("client closed"));
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
    headers: ResponseHeaders,
  ): void {
    const response = this.#response;
    if (status < 200) {
      if (status === 103 && headers.link && isModern(this.#request))
        response.writeEarlyHints({ link: headers.link });
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
    headers: ResponseHeaders,
    socket: Duplex,
  ): void {
    this.#release(false);
    const upgrade = this.#upgrade;
    if (!upgrade || this.isOver) return void socket.destroy();
    this.#finish(status);
    this.#response.detachSocket(upgrade.socket);
    joinTunnel(upgrade, socket as Socket, status, headers);
  }

  onResponseError(_controller: unknown, error: Error): void {
    const upstream = this.#upstream;
    const wasSent = this.#controller !== undefined;
    this.#release(false);
    if (this.isOver || !upstream) return;
    const body = this.#body;
    if (body instanceof RequestBody && body.isTooLarge) {
      return this.#answer(bodyTooLarge(this.#deps.settings.maxRequestBytes));
    }
    const attempt = {
      code: codeOf(error),
      method: this.#request.method ?? "",
      wasSent,
      wasReused: this.#wasReused,
      sinceSentMs: this.#deps.clock.now() - this.#sentAt,
      isAnswered: this.#isAnswered,
      isRetired: upstream.retired,
      isBodyRepeatable: !(body instanceof RequestBody) || body.isRepeatable,
      earlierBreaks: this.#breaks,
    };
    if (mayRepeat(attempt)) {
      this.#repeat(upstream, wasSent).catch(() => this.#response.destroy());
      return;
    }
    this.#deps.log.debug({ function: this.key, error: messageOf(error) }, "request failed");
    this.#answer(this.#failure(error, wasSent));
  }

  async #repeat(upstream: Upstream, wasSent: boolean): Promise<void> {
    const { metrics, clock } = this.#deps;
    metrics.repeated++;
    this.firstFailureAt ||= clock.now();
    if (wasSent) this.#breaks++;
    else upstream.suspect();
    const next = await this.#findUpstream();
    if (next) this.#send(next);
  }

  #failure(error: Error, wasSent: boolean): Answer {
    const code = codeOf(error);
    if (isUnsendable(code)) return malformedRequest(error.message);
    if (code === "UND_ERR_HEADERS_TIMEOUT") {
      return upstreamTimeout(this.key, this.#deps.settings.upstreamTimeoutMs);
    }
    if (code === "UND_ERR_HEADERS_OVERFLOW") return upstreamHeadTooLarge(this.key, maxHeadBytes);
    return wasSent ? upstreamFailed(this.key) : upstreamUnreachable(this.key);
  }

  /** An answer of our own; when the Pod's has begun, all that is left is to break it off visibly. */
  #answer(answer: Answer): void {
    if (this.isOver) return;
    if (this.#response.headersSent) {
      this.#response.destroy();
      return this.#finish(502);
    }
    sendAnswer(this.#request, this.#response, answer);
    this.#finish(answer.status);
  }

  #clientClosed(): void {
    if (this.isOver) return;
    this.#finish(499);
    this.#controller?.abort(new Error("client closed the connection"));
  }

  #release(reusable: boolean): void {
    if (this.#connection) this.#upstream?.release(this.#connection, reusable);
    this.#connection = undefined;
  }

  #finish(status: number): void {
    if (this.isOver) return;
    this.isOver = true;
    const { metrics, clock, routes, functions } = this.#deps;
    // Names that clients make up get no row of their own.
    const isKnown = routes.has(this.key) || functions.get(this.key) !== undefined;
    const seconds = (clock.now() - this.arrivedAt) / 1000;
    metrics.observe(isKnown ? this.key : undefined, status, seconds);
  }
}

function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? "";
}
