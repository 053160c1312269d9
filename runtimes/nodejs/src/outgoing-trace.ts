import { subscribe } from "node:diagnostics_channel";
import { ClientRequest } from "node:http";

type Headers = readonly (readonly [name: string, value: string])[];

let headersNow: () => Headers | undefined = () => undefined;

/** From now on this says what a request carries that is sent now; undefined when it is part of no trace. */
export function useTraceHeaders(headersOf: () => Headers | undefined): void {
  headersNow = headersOf;
}

/** The trace that all is part of which is done now; undefined without one. */
export function traceHeadersNow(): Headers | undefined {
  return headersNow();
}

/**
 * Lets every request that the Function sends, by `http`, `https` or `fetch`, carry a trace: the one that
 * it is part of, or else a new one, which those who are asked have in common.
 */
export function traceOutgoingRequests(): void {
  if (reportsCreatedRequests()) {
    subscribe("http.client.request.created", (message) =>
      addHeaders((message as { request: ClientRequest }).request),
    );
  } else addHeadersBeforeTheyAreWritten();
  subscribe("undici:request:create", (message) => {
    const { request } = message as {
      request: { headers: string | string[]; addHeader(name: string, value: string): void };
    };
    const has = String(request.headers).toLowerCase();
    for (const [name, value] of headersNow() ?? newTrace())
      if (!has.includes(name)) request.addHeader(name, value);
  });
}

/** Node.js 22.12 and later do. */
function reportsCreatedRequests(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > 22 || (major === 22 && minor >= 12);
}

/** A request whose headers are given as a list, or that expects `100 Continue`, has written them when it is created. */
function addHeaders(request: ClientRequest): void {
  if (request.headersSent) return;
  for (const [name, value] of headersNow() ?? newTrace())
    if (!request.hasHeader(name)) request.setHeader(name, value);
}

/** Node.js 20 says only that a request has been sent. All ways of making one lead to this method, which writes its headers. */
function addHeadersBeforeTheyAreWritten(): void {
  const prototype = ClientRequest.prototype as unknown as {
    _implicitHeader: (this: ClientRequest) => void;
  };
  const write = prototype._implicitHeader;
  prototype._implicitHeader = function (this: ClientRequest) {
    addHeaders(this);
    return write.call(this);
  };
}

function newTrace(): Headers {
  return traceHeaders({ traceId: digits(32), spanId: digits(16), traceFlags: 1 });
}

/** Random, and no secret: `node:crypto` would have to be loaded first, 1 MB of the process. */
function digits(count: number): string {
  let text = "";
  while (text.length < count)
    text += Math.trunc(Math.random() * 2 ** 32)
      .toString(16)
      .padStart(8, "0");
  return text;
}

interface Carried {
  traceId: string;
  spanId: string;
  traceFlags: number;
  tracestate?: string | undefined;
}

/** What an outgoing request carries, by W3C and by B3. */
export function traceHeaders({ traceId, spanId, traceFlags, tracestate }: Carried): Headers {
  return [
    ["traceparent", `00-${traceId}-${spanId}-0${traceFlags}`],
    ["x-b3-traceid", traceId],
    ["x-b3-spanid", spanId],
    ["x-b3-sampled", String(traceFlags)],
    ...(tracestate ? [["tracestate", tracestate] as const] : []),
  ];
}
