import { type IncomingHttpHeaders } from "node:http";
import { atStop } from "../background-work.ts";
import { type FunctionRequest } from "../function-request.ts";
import { isTraced } from "../is-traced.ts";
import { type Settings } from "../settings.ts";
import { traceHeaders, useTraceHeaders } from "../outgoing-trace.ts";
import { useTracer } from "../tracer.ts";
import {
  activeContext,
  type Context,
  enter,
  leave,
  rootContext,
  spanOf,
  withSpan,
} from "./context.ts";
import { provideOpenTelemetry } from "./opentelemetry.ts";
import { InvocationSpan } from "./invocation-span.ts";
import { Span } from "./span.ts";
import { SpanExporter } from "./span-exporter.ts";
import { randomId, readTraceContext } from "./trace-context.ts";
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

  /**
   * From now on all belongs to this request, which came at that moment by `monotonicMs`. Returns its span
   * if it is recorded.
   */
  enter(request: FunctionRequest, startMs: number): InvocationSpan | undefined {
    const parent = isTraced(request) ? readTraceContext(request.headers) : undefined;
    if (this.#exporter?.hasRoom) {
      const span = new InvocationSpan(this.#exporter, { request, parent, startMs });
      enter(span);
      return span;
    }
    // No span of ours is recorded: the caller's stays the parent.
    if (parent) enter(withSpan(rootContext, new Span("caller", parent)));
    else if (this.#exporter) enter(unrecorded());
    else leave();
    return undefined;
  }

  /** From now on all belongs to what another thread is recording, by the headers of its trace. */
  enterCaller(headers: IncomingHttpHeaders): void {
    const parent = readTraceContext(headers);
    if (parent) enter(withSpan(rootContext, new Span("caller", parent)));
    else leave();
  }

  /** What begins now belongs to no request. */
  leave(): void {
    leave();
  }
}

/** Of a trace that is more than can be sent: it is not recorded anywhere, rather than in parts. */
function unrecorded(): Context {
  const context = { traceId: randomId(16), spanId: randomId(8), traceFlags: 0 };
  return withSpan(rootContext, new Span("unrecorded", context));
}

/** Undefined when nothing is known of a trace. */
function outgoing() {
  const span = spanOf(activeContext());
  return span && traceHeaders(span.spanContext());
}
