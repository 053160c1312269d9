import { createServer, type Server } from "node:http";
import { accessLogger } from "./access-log.ts";
import { Admission } from "./admission.ts";
import { monotonicMs } from "./clock.ts";
import { Deadlines, type Waiting } from "./deadlines.ts";
import { FramedResponse } from "./framed-response.ts";
import { FunctionRequest } from "./function-request.ts";
import { FunctionResponse } from "./function-response.ts";
import { type Invocation, invoke } from "./invoke.ts";
import { isTraced } from "./is-traced.ts";
import { letFinish, lingerAfterAnswer } from "./linger.ts";
import { logError } from "./log.ts";
import {
  announce,
  hasBody,
  isLeftUnread,
  isPlainText,
  isTooLong,
  parseBody,
  readBody,
} from "./request-body.ts";
import { isFromOutside, isProbe, isScrape } from "./own-paths.ts";
import { type InvocationSpan } from "./tracing/invocation-span.ts";
import { type Tracing } from "./tracing/tracing.ts";
import { endWhenUnread, patienceMs } from "./unread-answer.ts";
import { takeBack } from "./refuse.ts";
import { logRefused, nameOf } from "./request-log.ts";
import { isRequestError, RequestError } from "./request-error.ts";

export type FunctionServer = Server<typeof FunctionRequest, typeof FunctionResponse>;

/** The HTTP server around a Function: the contract's own paths, and the Function for all others. */
export function createFunctionServer(invocation: Invocation): FunctionServer {
  const { settings } = invocation;
  const timeoutMs = settings.timeoutSeconds * 1000;
  const { concurrency = 0, queueLength } = settings;
  const admission = concurrency > 0 ? new Admission(concurrency, queueLength) : undefined;
  const deadlines = new Deadlines<Exchange>();
  underWay = () => [...deadlines].map(({ request }) => request);
  const circumstances = { invocation, timeoutMs, deadlines, admission };
  const log = settings.accessLog ? accessLogger : undefined;
  FramedResponse.cors = settings.cors ?? invocation.handler.cors ?? false;
  const server = createServer(
    {
      IncomingMessage: FunctionRequest,
      ServerResponse: FunctionResponse,
      // Longer than proxies keep theirs, so that none sends into a connection that we just closed.
      keepAliveTimeout: 75_000,
      headersTimeout: 60_000,
      requestTimeout: Math.max(timeoutMs, 60_000),
      maxHeaderSize: 32 * 1024,
      noDelay: true,
      // Others, such as Java's to HTTP/2, are only offers: the request is answered as it is.
      shouldUpgradeCallback: ({ headers }) =>
        (invocation.handler.server?.listenerCount("upgrade") ?? 0) > 0 ||
        (invocation.handler.websocket !== undefined &&
          headers.upgrade?.toLowerCase() === "websocket"),
    },
    (request, response) => {
      request.res = response;
      request.takeOriginForm();
      if (hasBody(request)) lingerAfterAnswer(request);
      log?.(request, response);
      if (isOwn(request, invocation))
        return whenRead(request, () => answerItself(request, response, invocation));
      if (!invocation.follow) return trace(request, response);
      invocation.follow(request, () => trace(request, response));
    },
  );
  // Who asks before it sends need not send what is too large.
  server.on("checkContinue", (request: FunctionRequest, response: FunctionResponse) => {
    if (isTooLong(request, settings.bodyLimitMb)) response.setHeader("connection", "close");
    else {
      request.res = response;
      try {
        if (isRead(request, invocation)) announce(request);
      } catch (error) {
        response.setHeader("connection", "close");
        return refuse(request, response, error);
      }
      response.writeContinue();
    }
    server.emit("request", request, response);
  });
  const trace = (request: FunctionRequest, response: FunctionResponse) => {
    const startMs = monotonicMs();
    const go = (tracing?: Tracing) =>
      answer(request, response, circumstances, startMs, tracing?.enter(request, startMs));
    if (invocation.tracing || !isTraced(request)) go(invocation.tracing);
    else void loadTracing(invocation).then(go);
  };
  return server;
}

/** Only for who is traced: most Functions never are. */
export async function loadTracing(invocation: Invocation): Promise<Tracing> {
  const { Tracing } = await import("./tracing/tracing.ts");
  return (invocation.tracing ??= new Tracing(invocation.settings));
}

/** Whether a request never reaches the Function. Handlers with paths of their own have these, too, but for probes and scrapers. */
function isOwn(request: FunctionRequest, { handler: { hasRoutes = false } }: Invocation): boolean {
  if (FramedResponse.cors && request.method === "OPTIONS") return true;
  switch (request.path) {
    case "/healthz":
      return !hasRoutes || isProbe(request);
    case "/metrics":
      return !isFromOutside(request) && (!hasRoutes || isScrape(request));
    case "/favicon.ico":
      return !hasRoutes;
    default:
      return false;
  }
}

/**
 * Its body, if it has one, is of no interest, but has to be read: a connection that is closed with data unread is reset, and
 * the client may lose the answer.
 */
function whenRead(request: FunctionRequest, then: () => void): void {
  if (!hasBody(request)) return then();
  request.once("end", then).resume();
}

function answerItself(
  request: FunctionRequest,
  response: FunctionResponse,
  { metrics }: Invocation,
): void {
  if (FramedResponse.cors && request.method === "OPTIONS") {
    const { "access-control-request-method": method, "access-control-request-headers": headers } =
      request.headers;
    if (method) response.setHeader("Access-Control-Allow-Methods", method);
    if (headers) response.setHeader("Access-Control-Allow-Headers", headers);
    return void response.end();
  }
  if (request.path === "/healthz") return void response.type("txt").end("OK");
  if (request.path === "/favicon.ico") return void response.status(204).end();
  response.set("content-type", "text/plain; version=0.0.4; charset=utf-8").end(metrics.toText());
}

interface Circumstances {
  invocation: Invocation;
  timeoutMs: number;
  deadlines: Deadlines<Exchange>;
  admission: Admission | undefined;
}

/** `startMs` is when it came, by `monotonicMs`; `span` is there when the request is recorded. */
function answer(
  request: FunctionRequest,
  response: FunctionResponse,
  { invocation, timeoutMs, deadlines, admission }: Circumstances,
  startMs: number,
  span: InvocationSpan | undefined,
): void {
  if (!admission) {
    entered = request;
    callFunction(request, response, invocation);
    entered = undefined;
    // Most answers are on their way by now: nothing can happen to them.
    if (response.writableFinished) return span?.end(response);
  }
  const exchange = new Exchange(request, response, { startMs, limitMs: timeoutMs });
  deadlines.enter(exchange);
  response.on("close", () => {
    deadlines.leave(exchange);
    span?.end(response);
    if (!response.writableFinished)
      abandon(request, new DOMException("the client closed the connection", "AbortError"));
  });
  if (!admission) return;
  try {
    admission.enter(response, () => callFunction(request, response, invocation));
  } catch (error) {
    refuse(request, response, error);
  }
}

/** A request whose answer is awaited. Only its beginning: a stream may take as long as it likes, and is read. */
class Exchange implements Waiting {
  readonly endMs: number;
  previous: this | undefined;
  next: this | undefined;
  readonly #request: FunctionRequest;
  readonly #response: FunctionResponse;
  readonly #limitMs: number;

  constructor(
    request: FunctionRequest,
    response: FunctionResponse,
    { startMs, limitMs }: { startMs: number; limitMs: number },
  ) {
    this.#request = request;
    this.#response = response;
    this.#limitMs = limitMs;
    this.endMs = startMs + limitMs;
  }

  get request(): FunctionRequest {
    return this.#request;
  }

  timeIsOver(): void {
    if (this.#response.headersSent) return endWhenUnread(this.#response, patienceMs);
    logRefused(
      this.#request,
      this.#response,
      `exceeded its time limit (${this.#limitMs / 1000} s)`,
    );
    refuse(this.#request, this.#response, new RequestError(408, "Request Timeout"));
    abandon(this.#request, new DOMException("the request exceeded its time limit", "TimeoutError"));
  }
}

/** Whatever class a framework has given it. */
function abandon(request: FunctionRequest, reason: Error): void {
  FunctionRequest.prototype.abandon.call(request, reason);
}

/** The one that the event loop is in, which has not entered the list of those that wait. */
let entered: FunctionRequest | undefined;
let underWay = (): FunctionRequest[] => [];

/** Requests that end with the process: `; this also ended request <id> (GET /)`, or nothing. */
export function requestsUnderWay(): string {
  const all = new Set([...(entered ? [entered] : []), ...underWay()]);
  const shown = [...all].slice(0, maxNamed).map(nameOf).join(", ");
  const more = all.size > maxNamed ? ` and ${all.size - maxNamed} more` : "";
  return all.size === 0 ? "" : `; this also ended ${shown}${more}`;
}

const maxNamed = 20;

/** Whether the handler gets the body, and not the stream. */
function isRead(request: FunctionRequest, { handler: { body } }: Invocation): boolean {
  if (body === "stream" || !hasBody(request)) return false;
  if (body === "typed") return isPlainText(request);
  return !(body === "parsed" && isLeftUnread(request));
}

/** With its body, read as the handler wants it. */
function callFunction(
  request: FunctionRequest,
  response: FunctionResponse,
  invocation: Invocation,
): void {
  const { body } = invocation.handler;
  try {
    if (!isRead(request, invocation)) return invoke(invocation, request, response);
  } catch (error) {
    return refuse(request, response, error);
  }
  readBody(request, invocation.settings.bodyLimitMb)
    .then((bytes) => {
      if (bytes.length > 0) request.rawBody = bytes;
      if (body === "parsed" || body === "whole") request.body = parseBody(bytes, request);
      return response.headersSent ? undefined : invoke(invocation, request, response);
    })
    .catch((error: unknown) => refuse(request, response, error));
}

function refuse(request: FunctionRequest, response: FunctionResponse, error: unknown): void {
  // A client that went away in the middle of its request reads no answer.
  if (response.destroyed || response.headersSent) return;
  const known = isRequestError(error);
  if (!known && !request.readableAborted) logError("answering a request", error);
  letFinish(request);
  if (known && (error.status === 413 || error.status === 503))
    logRefused(request, response, error.message);
  takeBack(response);
  response.withdraw();
  if (known && error.status === 503) response.set("retry-after", "1");
  response
    .status(known ? error.status : 500)
    .type("txt")
    .end(known ? error.message : "Internal server error");
}
