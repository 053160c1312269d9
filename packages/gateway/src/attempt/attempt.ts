import { type Readable, type Duplex } from "node:stream";
import { type Clock } from "@spry/kube";
import type { Dispatcher } from "undici";
import { type Backend, type Connection } from "./backend.ts";
import { type FailedAttempt } from "./retry.ts";

export type ResponseHeaders = Parameters<
  NonNullable<Dispatcher.DispatchHandler["onResponseStart"]>
>[2];

/** One request, as a backend is to get it. */
export interface OutgoingRequest {
  method: string;
  path: string;
  /** Names and values by turns. */
  headers: string[];
  body: Buffer | Readable | null;
  /** The protocol to switch to (RFC 9110 section 7.8). */
  upgrade?: string;
  /** Called when it is written to a connection. */
  onSent?: (() => void) | undefined;
  limits?: AttemptLimits | undefined;
}

/** Time limits in milliseconds; what is undefined has none, or that of the backend. */
export interface AttemptLimits {
  /** From the request's departure to the head of a response; not more than `totalMs`. */
  startMs?: number | undefined;
  /** What the owner has set, where these are not exactly that. */
  saidMs?: number | undefined;
  /** From the request's departure to the end of the response. */
  totalMs?: number | undefined;
  /** Without a byte of a response's body. */
  idleMs?: number | undefined;
}

/** What an attempt knows of its failure; the rest is known to who sent the request. */
export type AttemptFailure = Omit<FailedAttempt, "isBodyReplayable" | "earlierBreaks"> & {
  message: string;
  /** The limit that was exceeded, if one of `AttemptLimits` was. */
  limitMs?: number | undefined;
};

/** Gets what comes of an attempt. After `ended`, `upgraded` or `failed` nothing more follows. */
export interface ResponseReceiver {
  /** An interim response (1xx). */
  informed(status: number, headers: ResponseHeaders): void;
  started(status: number, headers: ResponseHeaders): void;
  /** False: no more data before `Attempt.resume`. */
  received(chunk: Buffer): boolean;
  ended(trailers: Record<string, string | string[] | undefined>): void;
  upgraded(status: number, headers: ResponseHeaders, socket: Duplex): void;
  failed(failure: AttemptFailure): void;
}

/**
 * One try to have one backend handle one request; undici calls the `on…` methods. It knows nothing of where the
 * request has come from: a dispatcher of events can deliver with it as well as an HTTP server.
 */
export class Attempt implements Dispatcher.DispatchHandler {
  readonly backend: Backend;
  readonly #request: OutgoingRequest;
  readonly #receiver: ResponseReceiver;
  readonly #clock: Clock;
  #connection: Connection | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #sentAt = 0;
  #hasResponded = false;
  #isAborted = false;
  #cancelLimit: (() => void) | undefined;
  #exceededMs: number | undefined;

  constructor(
    backend: Backend,
    request: OutgoingRequest,
    receiver: ResponseReceiver,
    clock: Clock,
  ) {
    this.backend = backend;
    this.#request = request;
    this.#receiver = receiver;
    this.#clock = clock;
  }

  /** Whether the request has been written to a connection. */
  get wasSent(): boolean {
    return this.#controller !== undefined;
  }

  send(): void {
    const { method, path, headers, body, upgrade, limits } = this.#request;
    const options: Dispatcher.DispatchOptions & { servername: string } = {
      method,
      path,
      headers,
      body,
      // Only for TLS, which is not spoken to Pods; without it undici looks for one in each request's Host.
      servername: this.backend.address,
    };
    if (upgrade !== undefined) options.upgrade = upgrade;
    if (limits?.idleMs !== undefined) options.bodyTimeout = limits.idleMs;
    // The limit of the attempt replaces that of the connection.
    if (limits?.startMs !== undefined) options.headersTimeout = 0;
    this.#connection = this.backend.take();
    this.#connection.client.dispatch(options, this);
  }

  /** The receiver hears nothing more. */
  abort(): void {
    this.#isAborted = true;
    this.#cancelLimit?.();
    this.#controller?.abort(new Error("the request was cancelled"));
  }

  /** Data may flow again, after `received` has returned false. */
  resume(): void {
    this.#controller?.resume();
  }

  /** The request is about to be written to a connection. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    const connection = this.#connection;
    this.#controller = controller;
    if (this.#isAborted || !connection) {
      controller.abort(new Error("the request was cancelled"));
      return;
    }
    this.#sentAt = this.#clock.elapsed();
    const { limits, onSent } = this.#request;
    onSent?.();
    if (limits) this.#limit(limits.startMs ?? limits.totalMs);
  }

  /** The first byte of a response: from here on nothing is sent again. */
  onResponseStarted(): void {
    this.#hasResponded = true;
    this.backend.responded();
  }

  onResponseStart(_controller: unknown, status: number, headers: ResponseHeaders): void {
    if (this.#isAborted) return;
    if (status < 200) {
      this.#receiver.informed(status, headers);
      return;
    }
    this.#hasResponded = true;
    if (this.#request.limits) this.#limit(this.#request.limits.totalMs);
    this.#receiver.started(status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#isAborted && !this.#receiver.received(chunk)) controller.pause();
  }

  onResponseEnd(
    _controller: unknown,
    trailers: Record<string, string | string[] | undefined>,
  ): void {
    this.#release(true);
    if (!this.#isAborted) this.#receiver.ended(trailers);
  }

  onRequestUpgrade(
    _controller: unknown,
    status: number,
    headers: ResponseHeaders,
    socket: Duplex,
  ): void {
    this.#release(false);
    if (this.#isAborted) socket.destroy();
    else this.#receiver.upgraded(status, headers, socket);
  }

  onResponseError(_controller: unknown, error: Error): void {
    const { wasSent } = this;
    this.#release(false);
    if (this.#isAborted) return;
    this.#receiver.failed({
      code: (error as NodeJS.ErrnoException).code ?? "",
      message: error.message,
      method: this.#request.method,
      wasSent,
      sinceSentMs: this.#clock.elapsed() - this.#sentAt,
      hasResponded: this.#hasResponded,
      isRetired: this.backend.retired,
      limitMs: this.#exceededMs,
    });
  }

  #release(reusable: boolean): void {
    this.#cancelLimit?.();
    this.#cancelLimit = undefined;
    if (this.#connection) this.backend.release(this.#connection, reusable);
    this.#connection = undefined;
  }

  /** From the request's departure; replaces the limit before. */
  #limit(ms: number | undefined): void {
    this.#cancelLimit?.();
    this.#cancelLimit = undefined;
    if (ms === undefined) return;
    const leftMs = Math.max(1, this.#sentAt + ms - this.#clock.elapsed());
    this.#cancelLimit = this.#clock.after(leftMs, () => {
      this.#exceededMs = this.#request.limits?.saidMs ?? ms;
      this.#controller?.abort(new Error("time limit exceeded"));
    });
  }
}
