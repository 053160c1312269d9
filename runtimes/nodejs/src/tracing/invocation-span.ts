import { type FunctionRequest } from "../function-request.ts";
import { type FunctionResponse } from "../function-response.ts";
import { Context, spanKey } from "./context.ts";
import { descriptionJson } from "./otlp-json.ts";
import { now, Span, spanKinds } from "./span.ts";
import { type SpanExporter } from "./span-exporter.ts";
import { randomId, type SpanContext } from "./trace-context.ts";

/**
 * The context of one request that is recorded. Its span is made when somebody asks for it: the
 * Function's own spans, or a request that it sends. Most Functions never do.
 */
export class InvocationSpan extends Context {
  readonly #startMs = now();
  /** Of the trace, if it begins here, and of the span. */
  readonly #ids = randomId(24);
  readonly #exporter: SpanExporter;
  readonly #request: FunctionRequest;
  readonly #parent: SpanContext | undefined;
  #span: Span | undefined;
  #hasEnded = false;

  constructor(exporter: SpanExporter, request: FunctionRequest, parent: SpanContext | undefined) {
    super();
    this.#exporter = exporter;
    this.#request = request;
    this.#parent = parent;
  }

  /** Who asks when it has ended, such as work in the background, gets one that has ended. */
  override getValue(key: symbol): unknown {
    return key === spanKey ? (this.#span ??= this.#create()) : undefined;
  }

  /** The answer is out, or will never be. */
  end({ statusCode }: FunctionResponse): void {
    if (!this.#span && !this.#parent) {
      this.#exportPlain(statusCode);
      this.#hasEnded = true;
      return;
    }
    const span = (this.#span ??= this.#create());
    span.setAttribute("http.response.status_code", statusCode);
    if (statusCode >= 500) span.setStatus({ code: 2 });
    span.end();
  }

  #exportPlain(statusCode: number): void {
    const [ids, startMs] = [this.#ids, this.#startMs];
    const description = describe(this.#request, statusCode);
    this.#exporter.addPlain({ ids, startMs, endMs: now(), description });
  }

  #create(): Span {
    const parent = this.#parent;
    const context = {
      traceId: parent?.traceId ?? this.#ids.slice(0, 32),
      spanId: this.#ids.slice(32),
      traceFlags: parent?.traceFlags ?? 1,
      tracestate: parent?.tracestate,
    };
    const { method = "GET" } = this.#request;
    return new Span(method, context, {
      kind: spanKinds.server,
      parentSpanId: parent?.spanId,
      startTime: this.#startMs,
      attributes: attributesOf(this.#request),
      onEnd: this.#hasEnded ? undefined : this.#exporter.add,
    });
  }
}

function attributesOf(request: FunctionRequest): Record<string, unknown> {
  return {
    "http.request.method": request.method,
    "url.path": request.path,
    "url.scheme": request.protocol,
    "server.address": request.hostname ?? "",
  };
}

let last = { statusCode: 0, method: "", url: "", host: "", scheme: "", bytes: Buffer.alloc(0) };

/** What the span says. Requests that follow one another are often for the same. */
function describe(request: FunctionRequest, statusCode: number): Buffer {
  const { method = "GET", originalUrl: url, host = "", protocol: scheme } = request;
  const isSame =
    last.statusCode === statusCode &&
    last.url === url &&
    last.method === method &&
    last.host === host &&
    last.scheme === scheme;
  if (isSame) return last.bytes;
  const json = descriptionJson({
    name: method,
    kind: spanKinds.server,
    attributes: { ...attributesOf(request), "http.response.status_code": statusCode },
    events: [],
    status: { code: statusCode >= 500 ? 2 : 0 },
  });
  last = { statusCode, method, url, host, scheme, bytes: Buffer.from(json) };
  return last.bytes;
}
