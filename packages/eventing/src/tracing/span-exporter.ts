/** Spans to a collector: OTLP over HTTP in its JSON encoding (opentelemetry-proto 1.x, `ExportTraceServiceRequest`). */
import { type Logger, messageOf } from "@spry/kube";
import { type TraceContext } from "./trace-context.ts";

/** `opentelemetry.proto.trace.v1.Span.SpanKind`. */
export const spanKind = { internal: 1, server: 2, client: 3 } as const;

export interface Span {
  context: TraceContext;
  parentSpanId?: string | undefined;
  name: string;
  kind: number;
  startMs: number;
  endMs: number;
  attributes: Readonly<Record<string, string | number>>;
  /** What went wrong, if anything did. */
  error?: string | undefined;
}

const intervalMs = 1_000;
const timeoutMs = 10_000;
/** More that wait for the collector are dropped: events do not wait for it. */
const maxSpans = 4_000;
const serviceName = "spry-eventing";
const scopeName = "spry.eventing";

/** Sends spans once in a second; a collector that cannot be reached costs nothing but the spans. */
export class SpanExporter {
  readonly #endpoint: () => string | undefined;
  readonly #log: Logger;
  #waiting: Span[] = [];
  #isTimed = false;
  #sending: Promise<void> = Promise.resolve();
  #hasFailed = false;

  /** `endpoint`: of the collector, for HTTP; undefined while there is none. */
  constructor(endpoint: () => string | undefined, log: Logger) {
    this.#endpoint = endpoint;
    this.#log = log;
  }

  /** Whether spans are of use at present. */
  get isOn(): boolean {
    return this.#endpoint() !== undefined;
  }

  add(span: Span): void {
    if (!span.context.isSampled || this.#waiting.length >= maxSpans) return;
    this.#waiting.push(span);
    if (this.#isTimed) return;
    this.#isTimed = true;
    setTimeout(() => {
      this.#isTimed = false;
      void this.flush();
    }, intervalMs).unref();
  }

  /** Resolves when what there is has been sent, or could not be. */
  flush(): Promise<void> {
    return (this.#sending = this.#sending.then(() => this.#send()));
  }

  async #send(): Promise<void> {
    const spans = this.#waiting.splice(0);
    const endpoint = this.#endpoint();
    if (spans.length === 0 || endpoint === undefined) return;
    try {
      const url = new URL(endpoint);
      if (url.pathname === "/") url.pathname = "/v1/traces";
      const response = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(requestOf(spans)),
        signal: AbortSignal.timeout(timeoutMs),
        redirect: "error",
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      this.#hasFailed = false;
    } catch (error) {
      if (!this.#hasFailed) this.#log.warn({ error: messageOf(error) }, "exporting spans");
      this.#hasFailed = true;
    }
  }
}

function requestOf(spans: readonly Span[]): object {
  const resource = { attributes: attributesOf({ "service.name": serviceName }) };
  const scopeSpans = [{ scope: { name: scopeName }, spans: spans.map(spanOf) }];
  return { resourceSpans: [{ resource, scopeSpans }] };
}

function spanOf(span: Span): object {
  const { context, parentSpanId, name, kind, startMs, endMs, attributes, error } = span;
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name,
    kind,
    startTimeUnixNano: nanos(startMs),
    endTimeUnixNano: nanos(Math.max(startMs, endMs)),
    attributes: attributesOf(attributes),
    status: error === undefined ? {} : { code: 2, message: error },
  };
}

/** 64-bit numbers are texts. */
const nanos = (ms: number): string => String(BigInt(Math.round(ms * 1_000)) * 1_000n);

const attributesOf = (attributes: Span["attributes"]): object[] =>
  Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === "number" ? { intValue: String(value) } : { stringValue: value },
  }));
