import { logError } from "../log.ts";
import { type Span } from "./span.ts";

const limits = { queued: 4096, perRequest: 512, intervalMs: 1000, timeoutMs: 10_000 };

/** Sends spans in batches, in OTLP's JSON form over HTTP. Drops what the collector does not take. */
export class SpanExporter {
  readonly #url: URL;
  readonly #serviceName: string;
  #queue: Span[] = [];
  #sending: Promise<void> | undefined;
  #hasFailed = false;

  constructor(endpoint: string, serviceName: string) {
    this.#url = new URL(endpoint);
    if (this.#url.pathname === "/") this.#url.pathname = "/v1/traces";
    this.#serviceName = serviceName;
    setInterval(() => void this.flush(), limits.intervalMs).unref();
  }

  readonly add = (span: Span): void => {
    if (this.#queue.length < limits.queued) this.#queue.push(span);
  };

  /** Sends all that is queued; settles when that is done, or has failed. */
  async flush(): Promise<void> {
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined));
    await this.#sending;
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const spans = this.#queue.splice(0, limits.perRequest);
      try {
        await post(this.#url, JSON.stringify(toOtlp(spans, this.#serviceName)));
        this.#hasFailed = false;
      } catch (error) {
        this.#queue = [];
        if (!this.#hasFailed) logError(`exporting spans to ${this.#url.href}`, error);
        this.#hasFailed = true;
      }
    }
  }
}

async function post(url: URL, body: string): Promise<void> {
  const { request } = await (url.protocol === "https:"
    ? import("node:https")
    : import("node:http"));
  await new Promise<void>((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    const options = { method: "POST", headers, timeout: limits.timeoutMs, agent: false };
    const outgoing = request(url, options, (answer) => {
      answer.resume();
      const { statusCode = 0 } = answer;
      if (statusCode < 300) answer.once("close", resolve);
      else reject(new Error(`it answered ${statusCode}`));
    });
    outgoing.once("timeout", () => outgoing.destroy(new Error("it did not answer in time")));
    outgoing.once("error", reject);
    outgoing.end(body);
  });
}

function toOtlp(spans: Span[], serviceName: string) {
  const resource = { attributes: keyValues({ "service.name": serviceName }) };
  const scope = { name: "io.kyma-project.serverless" };
  return { resourceSpans: [{ resource, scopeSpans: [{ scope, spans: spans.map(otlpSpan) }] }] };
}

function otlpSpan(span: Span) {
  const { traceId, spanId, tracestate } = span.spanContext();
  return {
    traceId,
    spanId,
    ...(tracestate && { traceState: tracestate }),
    ...(span.parentSpanId && { parentSpanId: span.parentSpanId }),
    name: span.name,
    kind: span.kind,
    startTimeUnixNano: nanoseconds(span.startMs),
    endTimeUnixNano: nanoseconds(span.endMs ?? span.startMs),
    attributes: keyValues(span.attributes),
    events: span.events.map(({ name, timeMs, attributes }) => {
      return { name, timeUnixNano: nanoseconds(timeMs), attributes: keyValues(attributes) };
    }),
    status: span.status,
  };
}

function nanoseconds(ms: number): string {
  return String(BigInt(Math.round(ms * 1000)) * 1000n);
}

function keyValues(attributes: Record<string, unknown>) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

function anyValue(value: unknown): object {
  if (typeof value === "boolean") return { boolValue: value };
  if (typeof value === "number")
    return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } };
  return { stringValue: String(value) };
}
