import { type Duplex } from "node:stream";
import { sleep } from "@spry/kube";
import { type Destination } from "../activation/destination.ts";
import { peerHeaders, refusedHeader } from "../admission/peer-requests.ts";
import {
  Attempt,
  type AttemptFailure,
  type AttemptLimits,
  type OutgoingRequest,
  type ResponseHeaders,
  type ResponseReceiver,
} from "../attempt/attempt.ts";
import { Backend } from "../attempt/backend.ts";
import { Breaks } from "../attempt/breaks.ts";
import { isBroken, mayRetry } from "../attempt/retry.ts";
import { logFailure } from "../http/access-log.ts";
import { hasBody } from "../http/client-side.ts";
import {
  backendEnded,
  backendTimeout,
  bodyStalled,
  bodyTooLarge,
  bodyTooSlow,
  type ErrorResponse,
  outOfMemory,
} from "../http/error-response.ts";
import { requestHeaders } from "../http/forwarded-headers.ts";
import { isModern } from "../http/request-head.ts";
import { withoutCookies } from "../pages/by-path.ts";
import { ClientReply } from "./client-reply.ts";
import { failureResponse } from "./failure-response.ts";
import { type Outcome } from "./filters.ts";
import { type Passage, type RequestDeps } from "./passage.ts";
import { type HeldBody, Placement } from "./placement.ts";
import { collectBody, maxReplayableBytes, RequestBody } from "./request-body.ts";

/** For failures other than a broken connection. */
const none = { earlier: 0, pauseMs: 0 };
/**
 * A process that ends after so long with a request was ended for a reason, such as that it blocked, and for so long that is waited for.
 * One that ends at once is what its caller learns at once.
 */
const longMs = 2_000;
const diagnosisMs = 2_000;
const diagnosisPauseMs = 100;
/** What a Function without conditions that say more answers with. */
const noReason = "NoReadyEndpoint";
/** For the way to a gateway that admits, and back. */
const peerGraceMs = 2_000;

/**
 * One request from its arrival to its end: reads its body, has a `Placement` find a place at a Pod, sends it there by an
 * `Attempt`, and passes what comes of it to the `ClientReply`. As long as no byte of a response has been received, a
 * request that failed may be sent again (`mayRetry`).
 */
export class Exchange implements ResponseReceiver {
  readonly #deps: RequestDeps;
  readonly #passage: Passage;
  readonly #reply: ClientReply;
  readonly #placement: Placement;
  #body: HeldBody;
  /** Of the memory budget, in its route's name: what is kept of its body. */
  #bodyBytes = 0;
  #attempt: Attempt | undefined;
  readonly #breaks = new Breaks();
  /** A Pod has had the request, and has ended it. */
  #hasBroken = false;
  /** When it was sent to a Pod first. */
  #sentAt: number | undefined;
  #isTunnel = false;
  #isOver = false;
  #cancelLimit = () => {};

  constructor(deps: RequestDeps, passage: Passage, destination: Destination) {
    this.#deps = deps;
    this.#passage = passage;
    this.#reply = new ClientReply(passage);
    this.#placement = new Placement(deps, passage, destination);
    this.#isOver = passage.response.destroyed;
    (passage.upgrade?.socket ?? passage.response).once("close", () => this.#clientClosed());
  }

  get #destination(): Destination {
    return this.#placement.destination;
  }

  async run(): Promise<void> {
    if (this.#isOver) return;
    this.#placement.arrive();
    const limitMs = this.#passage.exposed?.rule?.timeoutMs;
    if (limitMs !== undefined)
      this.#cancelLimit = this.#deps.clock.after(limitMs, () => this.#exceeded(limitMs));
    const { request } = this.#passage;
    const length = Number(request.headers["content-length"] ?? 0);
    const isExpected = request.headers.expect !== undefined && isModern(request);
    if (length > 0 && length <= maxReplayableBytes && !isExpected) {
      // Without a Pod, waiting begins at once and in parallel.
      const full = this.#destination.hasPlace ? undefined : this.#placement.enter(undefined, 0);
      if (full) return this.#respond(full);
      if (!(await this.#collect()) || this.#refuse(this.#placement.follow())) return;
    } else if (hasBody(request)) {
      this.#body = new RequestBody(request, this.#deps.settings.maxRequestBytes, {
        take: (bytes) => this.#keep(bytes),
        giveBack: () => this.#forgetBody(),
      });
    }
    const backend = this.#placement.take() ?? (await this.#waitForPlace());
    if (!backend) return;
    // Asked for once it is certain that the body will be read.
    if (isExpected) this.#reply.askForBody();
    this.#send(backend);
  }

  /** The whole time that the rule of an APIRule allows, waiting for a Pod included. */
  #exceeded(limitMs: number): void {
    this.#attempt?.abort();
    this.#respond(backendTimeout(this.#destination.policy.name, limitMs));
  }

  /** False when the request has ended. */
  async #collect(): Promise<boolean> {
    const { clock, settings } = this.#deps;
    const { bodyStallMs: stallMs, bodyTotalMs: totalMs } = settings;
    const mayKeep = (bytes: number) => this.#keep(bytes);
    const body = await collectBody(this.#passage.request, { clock, stallMs, totalMs, mayKeep });
    if (body === "stalled") this.#respond(bodyStalled(stallMs));
    else if (body === "slow") this.#respond(bodyTooSlow(totalMs));
    else if (body === "full") this.#respond(outOfMemory(this.#destination.policy.name));
    if (typeof body === "string" || body === undefined) return false;
    this.#body = body;
    return !this.#isOver;
  }

  /** Of the body; false when there is no memory for it. */
  #keep(bytes: number): boolean {
    const isTaken = !this.#isOver && this.#deps.memory.take(this.#passage.key, bytes);
    if (isTaken) this.#bodyBytes += bytes;
    return isTaken;
  }

  #forgetBody(): void {
    this.#deps.memory.give(this.#passage.key, this.#bodyBytes);
    this.#bodyBytes = 0;
  }

  /** Responds, and returns undefined, when there is none to wait for. */
  async #waitForPlace(): Promise<Backend | undefined> {
    const found = await this.#placement.wait(this.#body, () => this.#bodyBytes);
    if (found instanceof Backend) return found;
    this.#refuse(found);
    return undefined;
  }

  /** Whether the outcome ends the request. */
  #refuse(outcome: Outcome): boolean {
    if (outcome && outcome !== "handled") this.#respond(this.#afterBreak(outcome));
    return outcome !== undefined;
  }

  /** That no Pod is ready now is not why a request failed that one has had. */
  #afterBreak(outcome: ErrorResponse): ErrorResponse {
    const isAbsence = outcome.status === 503 && this.#hasBroken;
    return isAbsence ? backendEnded(this.#destination.policy.name, outcome) : outcome;
  }

  #send(backend: Backend): void {
    const cleared = this.#placement.occupy(backend);
    if (!cleared) return this.#dispatch(backend);
    this.#sendOnce(cleared, backend).catch(() => this.#reply.breakOff());
  }

  async #sendOnce(cleared: Promise<boolean>, backend: Backend): Promise<void> {
    const isCleared = await cleared;
    if (this.#isOver) return;
    if (isCleared) this.#dispatch(backend);
    // Another gateway admits now; nothing was sent. Tried again after a moment, in which this gateway learns of it.
    else await this.#seekAgain(false);
  }

  #dispatch(backend: Backend): void {
    const { request: received, host, path, prefix, upgrade } = this.#passage;
    const { isSecure, exposed, requestId } = this.#passage;
    const { method = "GET", headers } = received;
    const trust = this.#deps.settings.trustForwarded || this.#passage.peerRevision !== undefined;
    const changes = exposed?.requestHeaders;
    const sent = requestHeaders(received, { host, trust, isSecure, requestId, changes });
    const request: OutgoingRequest = {
      method,
      path,
      headers: this.#forBackend(backend, prefix ? withoutCookies(sent, prefix) : sent),
      body: this.#body instanceof RequestBody ? this.#body.open() : (this.#body ?? null),
      limits: this.#limits(backend),
    };
    if (upgrade) request.upgrade = headers.upgrade ?? "websocket";
    this.#attempt = new Attempt(backend, request, this, this.#deps.clock);
    this.#attempt.send();
  }

  /** Servers of gRPC want to hear that trailers are understood; both ends of ours do (RFC 9110 section 10.1.4). */
  #forBackend({ isH2c, isPeer }: Backend, headers: string[]): string[] {
    const { admission } = this.#deps;
    if (isPeer && admission) headers.push(...peerHeaders(this.#destination.key, admission.token));
    if (isH2c && this.#passage.request.headers.te === "trailers") headers.push("te", "trailers");
    return headers;
  }

  /** The rule's time limit, which `run` sees to, replaces the gateway's own. Another gateway keeps those of its Pods, once it has one. */
  #limits({ isPeer }: Backend): AttemptLimits | undefined {
    const { limits, maxWaitMs = 0 } = this.#destination.policy;
    if (isPeer) return { startMs: maxWaitMs + (limits?.startMs ?? 0) + peerGraceMs };
    // A request that is sent again has what is left of its time.
    const now = this.#deps.clock.elapsed();
    const passedMs = now - (this.#sentAt ??= now);
    if (limits?.startMs !== undefined && passedMs > 0)
      return { ...limits, startMs: Math.max(1, limits.startMs - passedMs) };
    const startMs = this.#passage.exposed?.rule?.timeoutMs;
    return limits ?? (startMs === undefined ? undefined : { startMs });
  }

  informed(status: number, headers: ResponseHeaders): void {
    this.#reply.inform(status, headers);
  }

  started(status: number, headers: ResponseHeaders): void {
    if (this.#attempt?.backend.isPeer && headers[refusedHeader] !== undefined)
      return this.#refusedByPeer();
    this.#reply.begin(status, headers, this.#placement.coldMs);
  }

  received(chunk: Buffer): boolean {
    return this.#reply.write(chunk, () => this.#attempt?.resume());
  }

  ended(trailers: Record<string, string | string[] | undefined>): void {
    this.#finish(this.#reply.end(trailers));
    if (this.#passage.request.complete) return;
    // The Pod has responded without reading everything.
    if (this.#body instanceof RequestBody) this.#body.close();
    this.#reply.readRest(this.#deps.clock);
  }

  upgraded(status: number, headers: ResponseHeaders, socket: Duplex): void {
    if (!this.#passage.upgrade) return void socket.destroy();
    // Tunnels have no time limit.
    this.#cancelLimit();
    // A Revision's Pod is in use, and must not be scaled down, as long as the tunnel is open.
    if (this.#destination.tally) this.#isTunnel = true;
    else this.#finish(status);
    this.#reply.joinTunnel(this.#passage.upgrade, { status, headers, socket });
  }

  failed(failure: AttemptFailure): void {
    const broke =
      isBroken(failure) && this.#attempt ? this.#noteBreak(this.#attempt.backend) : none;
    const body = this.#body;
    const isStreamed = body instanceof RequestBody;
    if (isStreamed && body.isTooLarge)
      return this.#respond(bodyTooLarge(this.#deps.settings.maxRequestBytes));
    const isBodyReplayable = !isStreamed || body.isReplayable;
    if (mayRetry({ ...failure, isBodyReplayable, earlierBreaks: broke.earlier })) {
      this.#retry(failure, broke.pauseMs).catch(() => this.#reply.breakOff());
      return;
    }
    const { name } = this.#destination.policy;
    logFailure(this.#deps, this.#passage, name, failure, this.#attempt?.backend.address);
    const response = failureResponse(failure, name, this.#deps.settings);
    if (!isBroken(failure) || failure.hasResponded || failure.sinceSentMs < longMs)
      return this.#respond(response);
    this.#diagnose().then(
      (absence) => this.#respond(absence ? backendEnded(name, absence) : response),
      () => this.#reply.breakOff(),
    );
  }

  /** Why its only Pod has ended; undefined if that is not known soon, or there are others. */
  async #diagnose(): Promise<ErrorResponse | undefined> {
    const { clock } = this.#deps;
    for (const end = clock.elapsed() + diagnosisMs; clock.elapsed() < end && !this.#isOver;) {
      const { otherwise } = this.#destination.policy.absence();
      if (otherwise.reason !== noReason) return otherwise;
      await sleep(clock, diagnosisPauseMs);
    }
    return undefined;
  }

  /** It does not admit any more, or not yet: the request has not been handled. */
  #refusedByPeer(): void {
    this.#attempt?.abort();
    this.failed({
      code: "",
      message: "the gateway does not admit requests any more",
      method: this.#passage.request.method ?? "GET",
      wasSent: false,
      sinceSentMs: 0,
      hasResponded: false,
      isRetired: false,
    });
  }

  #noteBreak({ address }: Backend): ReturnType<Breaks["note"]> {
    this.#hasBroken = true;
    const { requestId: id, path, request } = this.#passage;
    this.#deps.broken.note(address, { id, method: request.method ?? "GET", path });
    return this.#breaks.note(address, this.#deps.clock.elapsed());
  }

  async #retry({ wasSent }: AttemptFailure, pauseMs: number): Promise<void> {
    this.#deps.metrics.retried++;
    if (pauseMs > 0) await sleep(this.#deps.clock, pauseMs);
    if (this.#isOver) return;
    await this.#seekAgain(wasSent);
  }

  /** `wasSent`: the Pod has accepted a connection. */
  async #seekAgain(wasSent: boolean): Promise<void> {
    if (!this.#placement.lose(wasSent) || this.#refuse(this.#placement.follow())) return;
    const next = this.#placement.take() ?? (await this.#waitForPlace());
    if (next) this.#send(next);
  }

  /** A response of the gateway's own. */
  #respond(error: ErrorResponse): void {
    if (this.#isOver) return;
    this.#finish(this.#reply.refuse(error) ? error.status : 502);
  }

  #clientClosed(): void {
    this.#finish(this.#isTunnel ? 101 : 499);
  }

  #finish(status: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#reply.close();
    this.#forgetBody();
    this.#cancelLimit();
    if (status === 499) this.#attempt?.abort();
    this.#placement.end();
    const { metrics, clock } = this.#deps;
    const seconds = (clock.elapsed() - this.#placement.arrivedAt) / 1000;
    metrics.observe(this.#passage.route?.key, status, seconds);
  }
}
