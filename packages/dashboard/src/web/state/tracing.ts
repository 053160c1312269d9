/** Traces of requests: whether a Function sends them, and the ids of those that the console has begun (W3C Trace Context). */
import { type Pod } from "@spry/kube/browser";
import { store, stored } from "./tab-storage.ts";

/** Where the Function's Pods send spans; an empty text: nowhere; undefined while no Pod says so. */
export function collectorOf(pods: readonly Pod[]): string | undefined {
  for (const { spec } of pods)
    for (const { env = [] } of spec?.containers ?? []) {
      const found = env.find(({ name }) => name === "TRACE_COLLECTOR_ENDPOINT");
      if (found) return found.value ?? "";
    }
  return undefined;
}

const traceparent = /^\s*traceparent\s*:\s*[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}/im;

/** The id of the trace that a request with these headers, one per line, belongs to. */
export const traceIdIn = (headers: string): string | undefined => traceparent.exec(headers)?.[1];

/** The headers with a trace of their own that is recorded, unless they name one. Its id is the request's, too, which logs have. */
export function withTrace(headers: string): string {
  if (traceIdIn(headers) !== undefined) return headers;
  const id = randomHex(16);
  const hasId = /^\s*x-request-id\s*:/im.test(headers);
  return [
    ...headers.split("\n").filter((line) => line.trim() !== ""),
    `traceparent: 00-${id}-${randomHex(8)}-01`,
    ...(hasId ? [] : [`x-request-id: ${id}`]),
  ].join("\n");
}

const randomHex = (bytes: number): string =>
  [...crypto.getRandomValues(new Uint8Array(bytes))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");

export interface TracedCall {
  traceId: string;
  method: string;
  path: string;
  status: number;
  ms: number;
  /** RFC 3339 */
  at: string;
}

const callsShape = [
  {
    "traceId!": "text",
    "method!": "text",
    "path!": "text",
    "status!": "number",
    "ms!": "number",
    "at!": "text",
  },
] as const;
const maxKept = 20;
const keyOf = (namespace: string, name: string) => `traces.${namespace}/${name}`;

/** Of this tab's console, the newest first. */
export function tracedCalls(namespace: string, name: string): TracedCall[] {
  return stored<TracedCall[]>(keyOf(namespace, name), callsShape) ?? [];
}

export function keepTracedCall(namespace: string, name: string, call: TracedCall): void {
  const all = [call, ...tracedCalls(namespace, name)].slice(0, maxKept);
  store(keyOf(namespace, name), all);
}
