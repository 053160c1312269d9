import { randomFillSync } from "node:crypto";
import { type IncomingHttpHeaders } from "node:http";

/** What a span is known by to others: OpenTelemetry's SpanContext. */
export interface SpanContext {
  /** 32 and 16 hexadecimal digits. */
  traceId: string;
  spanId: string;
  /** 1 when the trace is recorded. */
  traceFlags: number;
  /** Of other vendors, handed on as it came. */
  tracestate?: string | undefined;
}

const limits = { tracestate: 512 };

/** The caller's span, by W3C Trace Context or else by B3, in one header or several. */
export function readTraceContext(headers: IncomingHttpHeaders): SpanContext | undefined {
  const w3c = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/.exec(
    headers["traceparent"]?.toString() ?? "",
  );
  const tracestate = headers["tracestate"]?.toString().slice(0, limits.tracestate);
  const [, traceId = "", spanId = "", flags = ""] = w3c ?? [];
  if (isId(traceId) && isId(spanId))
    return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) & 1, tracestate };
  return readB3(headers);
}

function readB3(headers: IncomingHttpHeaders): SpanContext | undefined {
  const [trace = "", span = "", flag = "1"] =
    headers["b3"]?.toString().toLowerCase().split("-") ??
    ["traceid", "spanid", "sampled"].map((name) =>
      headers[`x-b3-${name}`]?.toString().toLowerCase(),
    );
  const traceId = trace.padStart(32, "0");
  const isWhole = /^(?:[0-9a-f]{16}){1,2}$/.test(trace) && /^[0-9a-f]{16}$/.test(span);
  if (!isWhole || !isId(traceId) || !isId(span)) return undefined;
  return { traceId, spanId: span, traceFlags: flag === "0" || flag === "false" ? 0 : 1 };
}

/** An id of zeros is none. */
function isId(id: string): boolean {
  return /[1-9a-f]/.test(id);
}

/** Of a trace and of a span. */
export const idBytes = { trace: 16, span: 8, both: 24 } as const;
const idsPerPool = 512;

/** Random bytes, and the position of the next unused ones. */
export interface RandomIds {
  readonly bytes: Buffer;
  used: number;
}

let pool: RandomIds = { bytes: Buffer.alloc(0), used: 0 };

/** Where there are so many more, to be taken by adding to `used`. Drawn many at a time, as that is cheaper. */
export function randomIds(count: number): RandomIds {
  if (pool.used + count <= pool.bytes.length) return pool;
  pool = { bytes: randomFillSync(Buffer.allocUnsafe(idsPerPool * idBytes.both)), used: 0 };
  return pool;
}

/** So many random bytes as hexadecimal digits. */
export function randomId(bytes: 8 | 16): string {
  const ids = randomIds(bytes);
  ids.used += bytes;
  return ids.bytes.toString("hex", ids.used - bytes, ids.used);
}
