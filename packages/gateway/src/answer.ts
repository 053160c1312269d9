import { type IncomingMessage, type ServerResponse } from "node:http";

/** An answer of the gateway's own, in place of the Function's. */
export interface Answer {
  status: number;
  /** UpperCamelCase, also in the header `x-spry-reason`. */
  reason: string;
  message: string;
  headers?: Record<string, string>;
}

/** JSON for who asks for it, a line of text for all others. */
export function sendAnswer(
  request: IncomingMessage,
  response: ServerResponse,
  answer: Answer,
): void {
  const { status, reason, message } = answer;
  const json = (request.headers.accept ?? "").includes("json");
  const body = json ? JSON.stringify({ status, reason, message }) : `${message}\n`;
  response.writeHead(status, {
    "content-type": json ? "application/json" : "text/plain; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "x-spry-reason": headerSafe(reason),
    "cache-control": "no-store",
    // What is left of a request's body is not worth reading.
    ...(request.complete ? {} : { connection: "close" }),
    ...answer.headers,
  });
  response.end(request.method === "HEAD" ? undefined : body);
}

/** The same for a connection whose request could not even be read. */
export function rawAnswer({ status, reason, message }: Answer): string {
  const body = `${message}\n`;
  return (
    `HTTP/1.1 ${status} ${reason}\r\ncontent-type: text/plain; charset=utf-8\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\nx-spry-reason: ${reason}\r\n` +
    `connection: close\r\n\r\n${body}`
  );
}

/** Reasons come from objects that anybody may write. */
function headerSafe(text: string): string {
  return text.replace(/[^\w.-]/g, "").slice(0, 100);
}

export const unknownHost = (host: string | undefined): Answer => ({
  status: 404,
  reason: "UnknownHost",
  message:
    `no Function answers to the host ${JSON.stringify((host ?? "").slice(0, 260))}; ` +
    `Functions are at <function>.<namespace>.localhost`,
});

export const unknownFunction = (key: string, mayHaveOthers: boolean): Answer => {
  const [namespace, name] = key.split("/");
  const nearby = mayHaveOthers ? "" : `, nor any other Function`;
  return {
    status: 404,
    reason: "FunctionNotFound",
    message: `there is no Function ${name} in namespace ${namespace}${nearby}`,
  };
};

export const routesUnknown: Answer = {
  status: 503,
  reason: "RoutesUnknown",
  message: "the gateway has not reached the Kubernetes API yet",
  headers: { "retry-after": "1" },
};

export const bodyTooLarge = (limit: number): Answer => ({
  status: 413,
  reason: "RequestTooLarge",
  message: `the request's body is larger than ${limit} bytes`,
});

export const bodyStalled = (ms: number): Answer => ({
  status: 408,
  reason: "RequestTimeout",
  message: `nothing more of the request's body came for ${Math.round(ms / 1000)} s`,
});

export const malformedRequest = (why: string): Answer => ({
  status: 400,
  reason: "BadRequest",
  message: `the request cannot be passed on: ${why}`,
});

/** Nothing else on that connection is read: where the next request begins is not certain. */
export const malformedHead = (why: string): Answer => ({
  status: 400,
  reason: "BadRequest",
  message: `the request is malformed: ${why}`,
  headers: { connection: "close" },
});

export const upstreamHeadTooLarge = (key: string, limit: number): Answer => ({
  status: 502,
  reason: "UpstreamHeadersTooLarge",
  message: `Function ${key} answered with headers larger than ${limit / 1024} KiB`,
});

export const upstreamFailed = (key: string): Answer => ({
  status: 502,
  reason: "UpstreamFailed",
  message: `Function ${key} closed the connection without an answer`,
});

export const upstreamUnreachable = (key: string): Answer => ({
  status: 502,
  reason: "UpstreamUnreachable",
  message: `no Pod of Function ${key} accepts connections`,
});

export const upstreamTimeout = (key: string, ms: number): Answer => ({
  status: 504,
  reason: "UpstreamTimeout",
  message: `Function ${key} did not answer within ${Math.round(ms / 1000)} s`,
});

export const overloaded = (key: string): Answer => ({
  status: 503,
  reason: "Overloaded",
  message: `Function ${key} has more requests under way than it may have`,
  headers: { "retry-after": "1" },
});
