import { atStop } from "../background-work.ts";
import { type FunctionRequest } from "../function-request.ts";
import { isTraced } from "../is-traced.ts";
import { type Settings } from "../settings.ts";
import { traceHeaders, useTraceHeaders } from "../outgoing-trace.ts";
import { useTracer } from "../tracer.ts";
import { activeContext, rootContext, runWith, spanOf, untraced, withSpan } from "./context.ts";
import { provideOpenTelemetry } from "./opentelemetry.ts";
import { InvocationSpan } from "./invocation-span.ts";
import { Span } from "./span.ts";
import { SpanExporter } from "./span-exporter.ts";
import { randomId, readTraceContext, type SpanContext } from "./trace-context.ts";
import { Tracer } from "./tracer.ts";

/**
 * Continues the caller's trace: every request that the Function sends while it answers one carries
 * its trace, and with a collector each answer is a span, the parent of those that the Function makes.
 */
export class Tracing {
  readonly #exporter: SpanExporter | undefined;

  constructor({ traceEndpoint, functionName }: Settings) {
    useTraceHeaders(outgoing);
    if (!traceEndpoint) return;
    const exporter = new SpanExporter(traceEndpoint, functionName);
    atStop(() => exporter.flush());
    const tracer = new Tracer(exporter.add);
    this.#exporter = exporter;
    useTracer(tracer);
    provideOpenTelemetry(tracer);
  }

  /** Calls `answer` within the request's context, with its span if it is recorded. */
  run(request: FunctionRequest, answer: (span?: InvocationSpan) => void): void {
    const parent = isTraced(request) ? readTraceContext(request.headers) : undefined;
    if (!this.#exporter) {
      if (!parent) return answer();
      // Nobody records a span of ours: the caller's stays the parent.
      return runWith(withSpan(rootContext, new Span("caller", parent)), answer);
    }
    if (!this.#exporter.hasRoom) return this.#runUnrecorded(parent, answer);
    const span = new InvocationSpan(this.#exporter, request, parent);
    runWith(span, answer, span);
  }

  /** More than can be sent. A trace that would begin here is not recorded anywhere, rather than in parts. */
  #runUnrecorded(parent: SpanContext | undefined, answer: () => void): void {
    const context = parent ?? { traceId: randomId(16), spanId: randomId(8), traceFlags: 0 };
    runWith(withSpan(rootContext, new Span("unrecorded", context)), answer);
  }
}

/** None for what the runtime sends by itself; undefined when nothing is known of a trace. */
function outgoing() {
  const context = activeContext();
  if (context === untraced) return [];
  const span = spanOf(context);
  return span && traceHeaders(span.spanContext());
}
