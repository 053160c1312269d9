import { monotonicMs } from "../clock.ts";
import { type FunctionRequest } from "../function-request.ts";
import { type FunctionResponse } from "../function-response.ts";
import { givenId } from "../request-log.ts";
import { Context, spanKey } from "./context.ts";
import { epochTime, Span, spanKinds } from "./span.ts";
import { type SpanExporter } from "./span-exporter.ts";
import { attributesOf, fitsTemplate, templateOf } from "./span-template.ts";
import { idBytes, randomIds, type SpanContext } from "./trace-context.ts";

interface Invocation {
  request: FunctionRequest;
  /** The caller's span. */
  parent: SpanContext | undefined;
  /** When the request came, by `monotonicMs`. */
  startMs: number;
}

/**
 * The context of one request that is recorded. Its span is made when it is first needed: for the Function's own
 * spans, or a request that it sends. Most Functions never need it.
 */
export class InvocationSpan extends Context {
  readonly #startMs: number;
  /** Where its ids are: of the trace, if it begins here, and of the span. */
  readonly #ids: Buffer;
  readonly #at: number;
  readonly #exporter: SpanExporter;
  /** Until it has ended: a connection keeps the context of its last request for as long as it is idle. */
  #request: FunctionRequest | undefined;
  readonly #parent: SpanContext | undefined;
  #span: Span | undefined;

  constructor(exporter: SpanExporter, { request, parent, startMs }: Invocation) {
    super();
    this.#exporter = exporter;
    this.#request = request;
    this.#parent = parent;
    this.#startMs = startMs;
    const ids = randomIds(idBytes.both);
    this.#ids = ids.bytes;
    this.#at = ids.used;
    ids.used += idBytes.both;
  }

  /** Who asks when it has ended, such as work in the background, gets one that has ended. */
  override getValue(key: symbol): unknown {
    return key === spanKey ? (this.#span ??= this.#create()) : undefined;
  }

  /** The answer is out, or will never be. */
  end({ statusCode }: FunctionResponse): void {
    const request = this.#request;
    if (!request) return;
    const id = givenId(request);
    if (!this.#span && this.#parent?.tracestate === undefined && fitsTemplate(id))
      this.#exportPlain(request, statusCode, id);
    else {
      const span = (this.#span ??= this.#create());
      span.setAttribute("http.response.status_code", statusCode);
      if (statusCode >= 500) span.setStatus({ code: 2 });
      span.end();
    }
    this.#request = undefined;
  }

  #exportPlain(request: FunctionRequest, statusCode: number, requestId: string | undefined): void {
    const parent = this.#parent;
    if (parent?.traceFlags === 0) return;
    this.#exporter.addPlain({
      template: templateOf(request, statusCode, {
        hasParent: parent !== undefined,
        hasId: requestId !== undefined,
      }),
      requestId,
      ids: this.#ids,
      at: this.#at,
      parent,
      startMs: epochTime(this.#startMs),
      endMs: epochTime(monotonicMs()),
    });
  }

  #create(): Span {
    const [parent, at] = [this.#parent, this.#at];
    const spanAt = at + idBytes.trace;
    const context = {
      traceId: parent?.traceId ?? this.#ids.toString("hex", at, spanAt),
      spanId: this.#ids.toString("hex", spanAt, at + idBytes.both),
      traceFlags: parent?.traceFlags ?? 1,
      tracestate: parent?.tracestate,
    };
    const request = this.#request;
    return new Span(request?.method ?? "GET", context, {
      kind: spanKinds.server,
      parentSpanId: parent?.spanId,
      startTime: epochTime(this.#startMs),
      attributes: request && attributesOf(request),
      onEnd: request && this.#exporter.add,
    });
  }
}
