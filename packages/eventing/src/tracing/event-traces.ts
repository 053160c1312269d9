import { type Message } from "@spry/queue";
import { type CloudEvent } from "../events/cloud-event.ts";
import { type SpanExporter, spanKind } from "./span-exporter.ts";
import { newSpan, readTraceParent, type TraceContext, traceParentOf } from "./trace-context.ts";

/**
 * One trace from the publisher through the queue to the sink. An event keeps the context that it began with (CloudEvents' extension
 * Distributed Tracing); the spans of its publishing, of its wait and of each attempt to deliver it are children of that one.
 */
export class EventTraces {
  readonly #exporter: SpanExporter;

  constructor(exporter: SpanExporter) {
    this.#exporter = exporter;
  }

  /** Before events are accepted: those that are of no trace begin one. Call `end` of the result when they are durable, or refused. */
  publishing(events: readonly CloudEvent[]): {
    events: CloudEvent[];
    end: (error?: string) => void;
  } {
    if (!this.#exporter.isOn) return { events: [...events], end: () => {} };
    const startMs = preciseNow();
    const traced = events.map((event) => {
      const parent = readTraceParent(event.attributes["traceparent"]);
      const context = newSpan(parent);
      const traceparent = traceParentOf(context);
      const kept = parent ? event : { ...event, attributes: { ...event.attributes, traceparent } };
      return { event: kept, parent, context };
    });
    return {
      events: traced.map(({ event }) => event),
      end: (error) => {
        const endMs = preciseNow();
        for (const { event, parent, context } of traced)
          this.#exporter.add({
            context,
            parentSpanId: parent?.spanId,
            name: `publish ${event.attributes["type"] ?? ""}`,
            kind: spanKind.server,
            startMs,
            endMs,
            attributes: describing(event.attributes, "publish"),
            error,
          });
      },
    };
  }

  /** Before an attempt to deliver; undefined for an event of no trace. The result's context is what the sink is sent. */
  delivering(
    { attributes, at }: Message,
    { subscription, attempt }: { subscription: string; attempt: number },
  ): { traceparent: string; end: (error?: string) => void } | undefined {
    const parent = readTraceParent(attributes["traceparent"]);
    if (!parent || !this.#exporter.isOn) return undefined;
    const context = newSpan(parent);
    const startMs = preciseNow();
    const of = (operation: string) => ({
      ...describing(attributes, operation),
      "messaging.destination.subscription.name": subscription,
    });
    if (attempt === 1)
      this.#waited(parent, { startMs: at, endMs: startMs, attributes: of("receive") });
    return {
      traceparent: traceParentOf(context),
      end: (error) =>
        this.#exporter.add({
          context,
          parentSpanId: parent.spanId,
          name: `deliver ${attributes["type"] ?? ""}`,
          kind: spanKind.client,
          startMs,
          endMs: preciseNow(),
          attributes: { ...of("process"), "spry.delivery.attempt": attempt },
          error,
        }),
    };
  }

  #waited(
    parent: TraceContext,
    span: { startMs: number; endMs: number; attributes: Record<string, string> },
  ): void {
    const context = newSpan(parent);
    const name = "wait in the queue";
    this.#exporter.add({
      ...span,
      context,
      parentSpanId: parent.spanId,
      name,
      kind: spanKind.internal,
    });
  }
}

/** OpenTelemetry's semantic conventions for messaging and CloudEvents. */
const describing = (attributes: CloudEvent["attributes"], operation: string) => ({
  "messaging.system": "spry",
  "messaging.operation.type": operation,
  "messaging.message.id": attributes["id"] ?? "",
  "cloudevents.event_id": attributes["id"] ?? "",
  "cloudevents.event_type": attributes["type"] ?? "",
  "cloudevents.event_source": attributes["source"] ?? "",
});

/** Milliseconds since 1970, with fractions: a span may last less than one. */
const preciseNow = (): number => performance.timeOrigin + performance.now();
