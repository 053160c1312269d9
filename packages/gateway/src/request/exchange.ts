import { type Socket } from "node:net";
import { type Duplex } from "node:stream";
import { type ObjectKey } from "@spry/kube";
import { type Destination } from "../activation/destination.ts";
import { type Seeker } from "../activation/waiting-line.ts";
import {
  Attempt,
  type AttemptFailure,
  type AttemptLimits,
  type OutgoingRequest,
  type ResponseHeaders,
  type ResponseReceiver,
} from "../attempt/attempt.ts";
import { Backend } from "../attempt/backend.ts";
import { isBroken, mayRetry } from "../attempt/retry.ts";
import {
  backendTimeout,
  bodyStalled,
  bodyTooLarge,
  bodyTooSlow,
  outOfMemory,
  type ErrorResponse,
  sendErrorResponse,
  withRequestId,
} from "../http/error-response.ts";
import { requestHeaders, responseHeaders } from "../http/forwarded-headers.ts";
import { type ClientRequest, type ClientResponse, hasBody } from "../http/client-side.ts";
import { isModern } from "../http/request-head.ts";
import { joinTunnel } from "../http/tunnel.ts";
import { withCors, withCorsOf } from "../exposure/answers.ts";
import { forTunnel, isolated, withoutCookies } from "../pages/by-path.ts";
import { failureResponse } from "./failure-response.ts";
import { pass, routeFilters, routeOf } from "./filters.ts";
import { type Passage, type RequestDeps } from "./passage.ts";
import { collectBody, heldBytes, maxReplayableBytes, RequestBody } from "./request-body.ts";

/** How long a client may go on sending a body that is not read any more. */
const restMs = 1_000;

/**
 * The client's side of one request: finds a place at a Pod for it, sends it there by an `Attempt`, and passes the
 * response on. As long as no byte of a response has been received, a request that failed may be sent again (`mayRetry`).
 */
export class Exchange implements ResponseReceiver, Seeker {
  readonly arrivedAt: number;
  firstFailureAt = 0;
  readonly #deps: RequestDeps;
  readonly #passage: Passage;
  readonly #request: ClientRequest;
  readonly #response: ClientResponse;
  #destination: Destination;
  #body: Buffer | RequestBody | undefined;
  /** The Pod at which it has a place. */
  #backend: Backend | undefined;
  #attempt: Attempt | undefined;
  #breaks = 0;
  /** Of the memory budget, in its route's name: what is kept of its body, and for waiting. */
  #bodyBytes = 0;
  #lineBytes = 0;
  /** Whether it had to wait for a Pod to start. */
  #isCold = false;
  #coldMs = 0;
  #isTunnel = false;
  #hasWritten = false;
  /** Of a response that may be a head alone. */
  #head: { status: number; headers: string[] } | undefined;
  #isOver = false;
  #cancelLimit = () => {};

  constructor(deps: RequestDeps, passage: Passage, destination: Destination) {
    this.#deps = deps;
    this.#passage = passage;
    this.#request = passage.request;
    this.#response = passage.response;
    this.#destination = destination;
    this.arrivedAt = deps.clock.now();
    this.#isOver = passage.response.destroyed;
    (passage.upgrade?.socket ?? passage.response).once("close", () => this.#clientClosed());
  }

  async run(): Promise<void> {
    if (this.#isOver) return;
    this.#arrive();
    const limitMs = this.#passage.exposed?.rule?.timeoutMs;
    if (limitMs !== undefined)
      this.#cancelLimit = this.#deps.clock.after(limitMs, () => this.#exceeded(limitMs));
    const { headers } = this.#request;
    const length = Number(headers["content-length"] ?? 0);
    const isExpected = headers.expect !== undefined && isModern(this.#request);
    if (length > 0 && length <= maxReplayableBytes && !isExpected) {
      // Without a Pod, waiting begins at once and in parallel.
      if (!this.#destination.hasPlace && !this.#enter()) return;
      if (!(await this.#collect()) || !this.#isRouted()) return;
    } else if (hasBody(this.#request)) {
      this.#body = new RequestBody(this.#request, this.#deps.settings.maxRequestBytes, {
        take: (bytes) => this.#keep(bytes),
        giveBack: () => this.#forgetBody(),
      });
    }
    const backend = this.#destination.take() ?? (await this.#findPlace());
    if (!backend) return;
    // Asked for once it is certain that the body will be read.
    if (isExpected) this.#response.writeContinue();
    this.#send(backend);
  }

  /** The whole time that the rule of an APIRule allows, waiting for a Pod included. */
  #exceeded(limitMs: number): void {
    this.#attempt?.abort();
    this.#respond(backendTimeout(this.#destination.policy.name, limitMs));
  }

  #arrive(): void {
    const { tally, hasBackends } = this.#destination;
    tally?.arrived(!hasBackends);
  }

  /** False when the request has ended. */
  async #collect(): Promise<boolean> {
    const { clock, settings } = this.#deps;
    const { bodyStallMs: stallMs, bodyTotalMs: totalMs } = settings;
    const mayKeep = (bytes: number) => this.#keep(bytes);
    const body = await collectBody(this.#request, { clock, stallMs, totalMs, mayKeep });
    if (body === "stalled") this.#respond(bodyStalled(stallMs));
    else if (body === "slow") this.#respond(bodyTooSlow(totalMs));
    else if (body === "full") this.#respond(outOfMemory(this.#destination.policy.name));
    if (typeof body === "string" || body === undefined) return false;
    this.#body = body;
    return !this.#isOver;
  }

  /** Of the body; false when there is no memory for it. */
  #keep(bytes: number): boolean {
    const isTaken = !this.#isOver && this.#deps.memory.take(this.#owner, bytes);
    if (isTaken) this.#bodyBytes += bytes;
    return isTaken;
  }

  #forgetBody(): void {
    this.#deps.memory.give(this.#owner, this.#bodyBytes);
    this.#bodyBytes = 0;
  }

  /** Enters the waiting line of its destination; false when it has responded why that cannot be. */
  #enter(): boolean {
    this.#isCold ||= !this.#destination.hasBackends && this.firstFailureAt === 0;
    const bytes = heldBytes(this.#request, this.#body);
    const error = this.#destination.enter(this, bytes) ?? this.#hold(bytes);
    if (error) this.#respond(error);
    return error === undefined;
  }

  /** While it waits. What has been received of its body is counted already. */
  #hold(bytes: number): ErrorResponse | undefined {
    const more = Math.max(0, bytes - this.#bodyBytes - this.#lineBytes);
    if (!this.#deps.memory.take(this.#owner, more)) {
      return outOfMemory(this.#destination.policy.name);
    }
    this.#lineBytes += more;
    return undefined;
  }

  #letGo(): void {
    this.#deps.memory.give(this.#owner, this.#lineBytes);
    this.#lineBytes = 0;
  }

  /** Of its memory. A route's key stays, even when the route changes. */
  get #owner(): ObjectKey {
    return this.#passage.key;
  }

  /** Waits for a place. Responds, and returns undefined, when there is none to wait for. */
  async #findPlace(): Promise<Backend | undefined> {
    const { metrics } = this.#deps;
    while (!this.#isOver && this.#enter()) {
      metrics.waiting++;
      const place = await this.#destination.wait(this).finally(() => metrics.waiting--);
      if (place instanceof Backend) {
        if (!this.#isOver) return place;
        this.#destination.release(place);
      } else if (place === "moved") {
        const moved = this.#isRouted() ? this.#destination.take() : undefined;
        if (moved) return moved;
      } else {
        if (place) this.#respond(place);
        return undefined;
      }
    }
    return undefined;
  }

  /** Routes may have changed since it has chosen its destination. False when the request has ended. */
  #isRouted(): boolean {
    if (this.#isOver) return false;
    const route = routeOf(this.#passage, this.#deps.routes);
    return route?.leadsTo(this.#destination) === true || this.#reroute();
  }

  #reroute(): boolean {
    const error = pass(routeFilters, this.#passage, this.#deps);
    if (error && error !== "handled") this.#respond(error);
    const { destination } = this.#passage;
    if (error || !destination) return false;
    if (destination !== this.#destination) {
      this.#destination.leave(this);
      this.#destination.tally?.ended(false);
      this.#destination = destination;
      this.#arrive();
    }
    return true;
  }

  #send(backend: Backend): void {
    this.#backend = backend;
    // It may have entered the line, and found a place without waiting.
    this.#destination.leave(this);
    this.#letGo();
    this.#destination.tally?.started();
    if (this.#isCold && this.#coldMs === 0) this.#warmedUp();
    const { method = "GET", headers } = this.#request;
    const { host, path, prefix, upgrade, isSecure, exposed, requestId } = this.#passage;
    const { trustForwarded: trust } = this.#deps.settings;
    const changes = exposed?.requestHeaders;
    const sent = requestHeaders(this.#request, { host, trust, isSecure, requestId, changes });
    const request: OutgoingRequest = {
      method,
      path,
      headers: this.#forBackend(backend, prefix ? withoutCookies(sent, prefix) : sent),
      body: this.#body instanceof RequestBody ? this.#body.open() : (this.#body ?? null),
      limits: this.#limits(),
    };
    if (upgrade) request.upgrade = headers.upgrade ?? "websocket";
    this.#attempt = new Attempt(backend, request, this, this.#deps.clock);
    this.#attempt.send();
  }

  /** Servers of gRPC want to hear that trailers are understood; both ends of ours do (RFC 9110 section 10.1.4). */
  #forBackend({ isH2c }: Backend, headers: string[]): string[] {
    if (isH2c && this.#request.headers.te === "trailers") headers.push("te", "trailers");
    return headers;
  }

  /** The rule's time limit, which `run` sees to, replaces the gateway's own. */
  #limits(): AttemptLimits | undefined {
    const { limits } = this.#destination.policy;
    const startMs = this.#passage.exposed?.rule?.timeoutMs;
    return limits ?? (startMs === undefined ? undefined : { startMs });
  }

  #warmedUp(): void {
    const { metrics, clock } = this.#deps;
    this.#coldMs = clock.now() - this.arrivedAt;
    const { route } = this.#passage;
    if (!route) return;
    const revision = route.isKnative ? this.#destination.key : undefined;
    metrics.coldStarted(route.key, revision, this.#coldMs / 1000);
  }

  informed(status: number, headers: ResponseHeaders): void {
    if (status === 103 && headers.link && isModern(this.#request))
      this.#response.writeEarlyHints({ link: headers.link });
  }

  started(status: number, headers: ResponseHeaders): void {
    const { exposed, prefix, requestId } = this.#passage;
    const own = responseHeaders(headers, requestId);
    const out = exposed ? withCors(own, exposed) : prefix ? isolated(own, prefix) : own;
    // W3C Server Timing: browsers and tools show it.
    if (this.#isCold) out.push("server-timing", `coldstart;dur=${this.#coldMs}`);
    if (this.#response.respondWhole && headers["grpc-status"] !== undefined) {
      // If nothing follows, it ends with its head: a client of gRPC takes anything else for a broken response.
      this.#head = { status, headers: out };
      return;
    }
    this.#response.writeHead(status, out);
    // What has come along with the head is written with it; a body that comes later must not hold the head back.
    queueMicrotask(() => {
      if (!this.#hasWritten && !this.#isOver) this.#response.flushHeaders();
    });
  }

  received(chunk: Buffer): boolean {
    this.#writeHeldHead();
    this.#hasWritten = true;
    if (this.#response.write(chunk)) return true;
    this.#response.once("drain", () => this.#attempt?.resume());
    return false;
  }

  #writeHeldHead(): void {
    const head = this.#head;
    this.#head = undefined;
    if (head) this.#response.writeHead(head.status, head.headers);
  }

  ended(trailers: Record<string, string | string[] | undefined>): void {
    const head = this.#head;
    if (head && Object.keys(trailers).length === 0) {
      this.#head = undefined;
      this.#response.respondWhole?.(head.status, head.headers);
      return this.#finish(head.status);
    }
    this.#writeHeldHead();
    for (const _ in trailers) {
      this.#response.addTrailers(trailers);
      break;
    }
    this.#response.end();
    this.#finish(this.#response.statusCode);
    if (!this.#request.complete) this.#readRest();
  }

  /**
   * The Pod has responded without reading everything. The client may not look for its response before it has sent
   * everything, but not without bounds.
   */
  #readRest(): void {
    const { socket } = this.#request;
    if (this.#body instanceof RequestBody) this.#body.close();
    const cancel = this.#deps.clock.after(restMs, () => socket.destroy());
    this.#request.once("end", cancel).resume();
  }

  upgraded(status: number, headers: ResponseHeaders, socket: Duplex): void {
    const { upgrade, prefix } = this.#passage;
    if (!upgrade) return void socket.destroy();
    // Tunnels have no time limit.
    this.#cancelLimit();
    // A Revision's Pod is in use, and must not be scaled down, as long as the tunnel is open.
    if (this.#destination.tally) this.#isTunnel = true;
    else this.#finish(status);
    upgrade.detach();
    joinTunnel(upgrade, socket as Socket, status, prefix ? forTunnel(headers) : headers);
  }

  failed(failure: AttemptFailure): void {
    if (isBroken(failure) && this.#backend) this.#noteBreak(this.#backend);
    const body = this.#body;
    const isStreamed = body instanceof RequestBody;
    if (isStreamed && body.isTooLarge) {
      return this.#respond(bodyTooLarge(this.#deps.settings.maxRequestBytes));
    }
    const isBodyReplayable = !isStreamed || body.isReplayable;
    if (mayRetry({ ...failure, isBodyReplayable, earlierBreaks: this.#breaks })) {
      this.#retry(failure).catch(() => this.#response.destroy());
      return;
    }
    const { key } = this.#destination;
    const { requestId } = this.#passage;
    this.#deps.log.debug({ destination: key, requestId, error: failure.message }, "request failed");
    this.#respond(failureResponse(failure, this.#destination.policy.name, this.#deps.settings));
  }

  #noteBreak({ address }: Backend): void {
    const { requestId: id, path } = this.#passage;
    this.#deps.broken.note(address, { id, method: this.#request.method ?? "GET", path });
  }

  async #retry({ wasSent }: AttemptFailure): Promise<void> {
    const { metrics, clock } = this.#deps;
    metrics.retried++;
    this.firstFailureAt ||= clock.now();
    const backend = this.#backend;
    if (!backend) return;
    if (wasSent) this.#breaks++;
    else backend.suspect();
    this.#backend = undefined;
    this.#destination.release(backend);
    this.#destination.tally?.stopped(!this.#destination.hasBackends);
    if (!this.#isRouted()) return;
    const next = this.#destination.take() ?? (await this.#findPlace());
    if (next) this.#send(next);
  }

  /** A response of the gateway's own; when the Pod's has begun, all that is left is to break it off visibly. */
  #respond(error: ErrorResponse): void {
    if (this.#isOver) return;
    if (this.#response.headersSent) {
      this.#response.destroy();
      return this.#finish(502);
    }
    const { exposed, isPublic } = this.#passage;
    const answer = withRequestId(withCorsOf(error, exposed), this.#passage.requestId);
    sendErrorResponse(this.#request, this.#response, answer, isPublic || exposed !== undefined);
    this.#finish(error.status);
  }

  #clientClosed(): void {
    if (this.#isOver) return;
    this.#finish(this.#isTunnel ? 101 : 499);
  }

  #finish(status: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#letGo();
    this.#forgetBody();
    this.#cancelLimit();
    if (status === 499) this.#attempt?.abort();
    if (this.#backend) this.#destination.release(this.#backend);
    else this.#destination.leave(this);
    this.#destination.tally?.ended(this.#backend !== undefined);
    this.#backend = undefined;
    const { metrics, clock } = this.#deps;
    const seconds = (clock.now() - this.arrivedAt) / 1000;
    metrics.observe(this.#passage.route?.key, status, seconds);
  }
}
