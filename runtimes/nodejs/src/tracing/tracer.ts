import { activeContext, type Context, runWith, spanOf, withSpan } from "./context.ts";
import { Span } from "./span.ts";
import { randomId, type SpanContext } from "./trace-context.ts";

interface SpanOptions {
  kind?: number | undefined;
  attributes?: Record<string, unknown> | undefined;
  startTime?: number | Date | [number, number] | undefined;
  root?: boolean;
}

/** OpenTelemetry's Tracer. A trace that begins here is recorded; others as their caller says. */
export class Tracer {
  readonly #onEnd: (span: Span) => void;

  constructor(onEnd: (span: Span) => void) {
    this.#onEnd = onEnd;
  }

  create(name: string, parent: SpanContext | undefined, options: SpanOptions = {}): Span {
    const context = {
      traceId: parent?.traceId ?? randomId(16),
      spanId: randomId(8),
      traceFlags: parent?.traceFlags ?? 1,
      tracestate: parent?.tracestate,
    };
    const { kind, startTime, attributes } = options;
    const [parentSpanId, onEnd] = [parent?.spanId, this.#onEnd];
    return new Span(name, context, { kind, startTime, attributes, parentSpanId, onEnd });
  }

  /** OpenTelemetry counts kinds from 0, its protocol from 1. */
  readonly startSpan = (
    name: string,
    { kind = 0, attributes, startTime, root }: SpanOptions = {},
    context: Context = activeContext(),
  ): Span => {
    const parent = root ? undefined : spanOf(context)?.spanContext();
    const span = this.create(name, parent, { kind: kind + 1, startTime });
    return attributes ? span.setAttributes(attributes) : span;
  };

  /** `startActiveSpan(name[, options[, context]], fn)`: what `fn` returns. */
  readonly startActiveSpan = (name: string, ...rest: unknown[]): unknown => {
    const fn = rest.pop() as (span: Span) => unknown;
    const [options, context = activeContext()] = rest as [SpanOptions?, Context?];
    const span = this.startSpan(name, options, context);
    return runWith(withSpan(context, span), () => fn(span));
  };
}
