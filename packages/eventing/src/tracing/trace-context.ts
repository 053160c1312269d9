import { randomBytes } from "node:crypto";

/** A span as others know it: W3C Trace Context. */
export interface TraceContext {
  /** 32 and 16 hexadecimal digits. */
  traceId: string;
  spanId: string;
  /** Whether the trace is recorded. */
  isSampled: boolean;
}

/** Undefined for what is not valid: a trace of its own begins then. */
export function readTraceParent(text: string | undefined): TraceContext | undefined {
  const [, traceId = "", spanId = "", flags = ""] =
    /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/.exec(text ?? "") ?? [];
  // An id of zeros is not valid.
  if (!/[1-9a-f]/.test(traceId) || !/[1-9a-f]/.test(spanId)) return undefined;
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export const traceParentOf = ({ traceId, spanId, isSampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;

/** A child of the span, or the first span of a trace of its own. */
export function newSpan(parent?: TraceContext): TraceContext {
  return {
    traceId: parent?.traceId ?? randomBytes(16).toString("hex"),
    spanId: randomBytes(8).toString("hex"),
    isSampled: parent?.isSampled ?? true,
  };
}
