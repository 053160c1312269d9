import { subscribe } from "node:diagnostics_channel";
import { type ClientRequest } from "node:http";

type Headers = readonly (readonly [name: string, value: string])[];

let headersNow: () => Headers | undefined = () => undefined;

/** From now on this says what a request carries that is sent now; undefined when it is part of no trace. */
export function useTraceHeaders(headersOf: () => Headers | undefined): void {
  headersNow = headersOf;
}

/**
 * Lets every request that the Function sends, by `http`, `https` or `fetch`, carry a trace: the one that
 * it is part of, or else a new one, which those who are asked have in common.
 */
export function traceOutgoingRequests(): void {
  subscribe("http.client.request.created", (message) => {
    const { request } = message as { request: ClientRequest };
    for (const [name, value] of headersNow() ?? newTrace())
      if (!request.hasHeader(name)) request.setHeader(name, value);
  });
  subscribe("undici:request:create", (message) => {
    const { request } = message as {
      request: { headers: string | string[]; addHeader(name: string, value: string): void };
    };
    const has = String(request.headers).toLowerCase();
    for (const [name, value] of headersNow() ?? newTrace())
      if (!has.includes(name)) request.addHeader(name, value);
  });
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
