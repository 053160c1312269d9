import { errorPage } from "../pages/error-page.ts";
import { pageHeaders, wantsPage } from "../pages/html.ts";
import { printable } from "./printable.ts";
import { type ClientRequest, type ClientResponse } from "./client-side.ts";
import { requestIdHeader } from "./request-id.ts";

/** Why the gateway answers in its own name. */
export const reasonHeader = "x-spry-reason";

/** A response of the gateway's own, in place of the Function's. */
export interface ErrorResponse {
  status: number;
  /** UpperCamelCase, also in the header `x-spry-reason`. */
  reason: string;
  message: string;
  /** In place of `message`, for clients on this machine: it may quote paths and errors. */
  localMessage?: string;
  headers?: Record<string, string>;
}

/** A page for browsers, JSON for clients that accept it, a line of text for all others. `isPublic`: others than this machine's programs read it. */
export function sendErrorResponse(
  request: ClientRequest,
  response: ClientResponse,
  error: ErrorResponse,
  isPublic: boolean,
): void {
  const { status, reason } = error;
  const message = printable((isPublic ? undefined : error.localMessage) ?? error.message);
  const isPage = wantsPage(request);
  const json = !isPage && (request.headers.accept ?? "").includes("json");
  const body = isPage
    ? errorPage(status, reason, message)
    : json
      ? JSON.stringify({ status, reason, message })
      : `${message}\n`;
  response.writeHead(status, {
    ...(isPage
      ? pageHeaders
      : { "content-type": json ? "application/json" : "text/plain; charset=utf-8" }),
    "content-length": Buffer.byteLength(body),
    [reasonHeader]: headerSafe(reason),
    "cache-control": "no-store",
    // The rest of a request's body is not worth reading.
    ...(request.complete ? {} : { connection: "close" }),
    ...error.headers,
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

export const withRequestId = (error: ErrorResponse, id: string): ErrorResponse => ({
  ...error,
  headers: { ...error.headers, [requestIdHeader]: id },
});

/** The same for a connection whose request could not even be read. */
export function rawErrorResponse({ status, reason, message }: ErrorResponse): string {
  const body = `${message}\n`;
  return (
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: text/plain; charset=utf-8\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\nx-spry-reason: ${reason}\r\n` +
    `connection: close\r\n\r\n${body}`
  );
}

/** Reasons come from objects that any user may write. */
function headerSafe(text: string): string {
  return text.replace(/[^\w.-]/g, "").slice(0, 100);
}

const retrySoon = { "retry-after": "1" };
const seconds = (ms: number) => `${Math.round(ms / 100) / 10} s`;

export const unknownHost = (host: string | undefined): ErrorResponse => ({
  status: 404,
  reason: "UnknownHost",
  message:
    `no Function has the host ${JSON.stringify((host ?? "").slice(0, 260))}; ` +
    `hosts have the form <function>.<namespace>.localhost`,
});

export const unknownFunction = (key: string, hasOthers: boolean): ErrorResponse => {
  const [namespace, name] = key.split("/");
  const message = `Function ${name} not found in namespace ${namespace}`;
  const localMessage = hasOthers ? message : `${message}, which has no Functions`;
  return { status: 404, reason: "FunctionNotFound", message, localMessage };
};

/** No rule of an APIRule names the path and method: as the original answers. */
export const notExposed: ErrorResponse = {
  status: 404,
  reason: "NotExposed",
  message: "nothing is exposed under this path with this method",
};

/** Why is in the gateway's log. */
export const forbidden: ErrorResponse = {
  status: 403,
  reason: "Forbidden",
  message: "access is denied",
};

/** A NetworkPolicy of the Pods behind it does not admit the caller's. */
export const keptAway: ErrorResponse = {
  status: 403,
  reason: "NetworkPolicy",
  message: "a NetworkPolicy does not admit this caller",
};

/** Its callers need tokens, which its own host does not ask for. */
export const guarded = (service: string, apiRule: string): ErrorResponse => ({
  ...forbidden,
  localMessage: `APIRule ${apiRule} demands tokens of the callers of ${service}: call it by the host of the APIRule`,
});

export const serviceMissing: ErrorResponse = {
  status: 503,
  reason: "ServiceMissing",
  message: "the Service that is exposed under this host does not exist",
  headers: retrySoon,
};

export const misdirected = (host: string): ErrorResponse => ({
  status: 421,
  reason: "MisdirectedRequest",
  message: `the connection was not opened for the host ${JSON.stringify(host.slice(0, 260))}`,
});

export const routesUnknown: ErrorResponse = {
  status: 503,
  reason: "RoutesUnknown",
  message: "the gateway has not reached the Kubernetes API yet",
  headers: retrySoon,
};

export const unexpectedProbe = (value: string): ErrorResponse => ({
  status: 400,
  reason: "UnexpectedProbe",
  message: `unexpected probe header value: ${JSON.stringify(value.slice(0, 100))}`,
});

export const bodyTooLarge = (limit: number): ErrorResponse => ({
  status: 413,
  reason: "RequestTooLarge",
  message: `request body exceeds the limit of ${limit} bytes`,
});

export const bodyStalled = (ms: number): ErrorResponse => ({
  status: 408,
  reason: "RequestTimeout",
  message: `request body is incomplete, and nothing more was received for ${seconds(ms)}`,
});

export const bodyTooSlow = (ms: number): ErrorResponse => ({
  status: 408,
  reason: "RequestTimeout",
  message: `request body was not received completely within ${seconds(ms)}`,
});

/** In the whole gateway. What this one may take depends on what others have taken. */
export const outOfMemory = (name: string): ErrorResponse => ({
  status: 503,
  reason: "GatewayOverloaded",
  message: `the gateway's memory for requests to ${name} is used up; retry later`,
  headers: retrySoon,
});

export const malformedRequest = (why: string): ErrorResponse => ({
  status: 400,
  reason: "BadRequest",
  message: `request cannot be forwarded: ${why}`,
});

/** Nothing else on that connection is read: where the next request begins is not certain. */
export const malformedHead = (why: string): ErrorResponse => ({
  status: 400,
  reason: "BadRequest",
  message: `malformed request: ${why}`,
  headers: { connection: "close" },
});

/** In the messages below, `name` is `Function default/hello` or `Revision default/hello-00001`. */
export const backendHeadTooLarge = (name: string, limit: number): ErrorResponse => ({
  status: 502,
  reason: "UpstreamHeadersTooLarge",
  message: `${name} responded with headers larger than ${limit / 1024} KiB`,
});

export const backendFailed = (name: string): ErrorResponse => ({
  status: 502,
  reason: "UpstreamFailed",
  message:
    `${name} closed the connection before it responded; it may have handled the request ` +
    `(as when the process ended while it had the request)`,
});

/** The only Pod has failed a request. Why it ended tells more than the fact that no Pod is left. */
export function backendEnded(
  name: string,
  { message, localMessage }: ErrorResponse,
): ErrorResponse {
  const failed = backendFailed(name);
  return {
    ...failed,
    message: `${failed.message}. ${message}`,
    localMessage: `${failed.message}. ${localMessage ?? message}`,
  };
}

export const backendUnreachable = (name: string): ErrorResponse => ({
  status: 502,
  reason: "UpstreamUnreachable",
  message: `no Pod of ${name} accepts connections`,
});

export const backendTimeout = (name: string, ms: number): ErrorResponse => ({
  status: 504,
  reason: "UpstreamTimeout",
  message: `${name} exceeded its time limit (${seconds(ms)})`,
});

/** Every Pod handles as many requests as the gateway gives it; none became free in time. */
export const overloaded = (name: string): ErrorResponse => ({
  status: 503,
  reason: "Overloaded",
  message: `every Pod of ${name} is at the gateway's limit of concurrent requests; retry later`,
  headers: retrySoon,
});

/** Another gateway admits requests to this Function, and cannot be reached. */
export const admissionUnreachable = (name: string): ErrorResponse => ({
  status: 503,
  reason: "AdmissionUnreachable",
  message: `the gateway that keeps the concurrency limit of ${name} does not answer; retry later`,
});

/** Of a limit that the Revision's owner has set (RFC 6585 section 4). */
export const concurrencyExceeded = (name: string, limit: number): ErrorResponse => ({
  status: 429,
  reason: "ConcurrencyLimitExceeded",
  message: `every Pod of ${name} is at its concurrency limit (${limit}); retry later`,
  headers: retrySoon,
});

export const queueFull = (name: string, limit: string): ErrorResponse => ({
  status: 503,
  reason: "QueueFull",
  message: `too many requests are waiting for ${name} (limit: ${limit}); retry later`,
  headers: retrySoon,
});

export const notReady = (
  reason: string,
  message: string,
  localMessage = message,
): ErrorResponse => ({
  status: 503,
  reason,
  message,
  localMessage,
  headers: retrySoon,
});
