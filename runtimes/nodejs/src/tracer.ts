/** The part of OpenTelemetry's Span that Functions call; it records nothing. */
const span = {
  spanContext: () => ({ traceId: "0".repeat(32), spanId: "0".repeat(16), traceFlags: 0 }),
  setAttribute: () => span,
  setAttributes: () => span,
  addEvent: () => span,
  addLink: () => span,
  addLinks: () => span,
  setStatus: () => span,
  updateName: () => span,
  recordException: () => {},
  end: () => {},
  isRecording: () => false,
};

interface Tracer {
  startSpan(name: string, ...rest: never[]): unknown;
  startActiveSpan(name: string, ...rest: unknown[]): unknown;
}

let current: Tracer = {
  startSpan: () => span,
  startActiveSpan: (_name, ...rest) => {
    const fn = rest.at(-1);
    return typeof fn === "function" ? (fn as (active: typeof span) => unknown)(span) : undefined;
  },
};

/** From now on spans are recorded by this one. */
export function useTracer(tracer: Tracer): void {
  current = tracer;
}

/** `event.tracer`: OpenTelemetry's Tracer, so that code that makes spans runs unchanged. */
export const tracer = {
  startSpan: (name: string, ...rest: unknown[]) => current.startSpan(name, ...(rest as never[])),
  /** `startActiveSpan(name[, options[, context]], fn)`: what `fn` returns. */
  startActiveSpan: (name: string, ...rest: unknown[]) => current.startActiveSpan(name, ...rest),
};
