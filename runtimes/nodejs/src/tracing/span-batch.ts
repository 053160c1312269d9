import { type BlankSpan, requestHead, spanField } from "./otlp.ts";
import { writeTime } from "./protobuf-writer.ts";
import { type Span } from "./span.ts";
import { idBytes, type SpanContext } from "./trace-context.ts";

/** A span of an invocation to which nothing was added, of which there are many that differ in little else than this. */
export interface PlainSpan {
  template: BlankSpan;
  /** Whose bytes from `at` on are its ids: of the trace, if it begins here, and of the span. */
  ids: Uint8Array;
  at: number;
  parent: SpanContext | undefined;
  /** In `X-Request-Id`. */
  requestId: string | undefined;
  startMs: number;
  endMs: number;
}

/**
 * The body of one request to the collector, written in its final form as spans end: what they were
 * made of need not outlive them, and the garbage collector never meets what waits here.
 */
export class SpanBatch {
  /** Memory is taken as it is written to. */
  readonly #bytes: Buffer;
  readonly #serviceName: string;
  #length = 0;

  constructor(size: number, serviceName: string) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
    this.#serviceName = serviceName;
  }

  get isEmpty(): boolean {
    return this.#length === 0;
  }

  /** False when it does not fit any more. */
  add(span: Span): boolean {
    const field = spanField(span);
    if (!this.#fits(field.length)) return false;
    this.#bytes.set(field, this.#length);
    this.#length += field.length;
    return true;
  }

  /** The same for the many that are all alike, at a tenth of the cost. */
  addPlain({ template, ids, at, parent, requestId, startMs, endMs }: PlainSpan): boolean {
    const { bytes, places } = template;
    if (!this.#fits(bytes.length)) return false;
    const begin = this.#length;
    this.#bytes.set(bytes, begin);
    this.#length += bytes.length;
    if (parent) {
      this.#bytes.write(parent.traceId, begin + places.traceId, "hex");
      this.#bytes.write(parent.spanId, begin + places.parentSpanId, "hex");
    } else this.#copy(ids, at, begin + places.traceId, idBytes.trace);
    this.#copy(ids, at + idBytes.trace, begin + places.spanId, idBytes.span);
    if (requestId !== undefined && template.requestId !== undefined)
      this.#bytes.write(requestId, begin + template.requestId, "latin1");
    writeTime(this.#bytes, begin + places.start, startMs);
    writeTime(this.#bytes, begin + places.end, endMs);
    return true;
  }

  /** The whole body, in parts; the batch must not be written to until `clear`. */
  close(): Uint8Array[] {
    const spans = this.#bytes.subarray(0, this.#length);
    return [requestHead(this.#serviceName, spans.length), spans];
  }

  clear(): void {
    this.#length = 0;
  }

  #fits(length: number): boolean {
    return this.#length + length <= this.#bytes.length;
  }

  #copy(from: Uint8Array, at: number, place: number, count: number): void {
    for (let each = 0; each < count; each++) this.#bytes[place + each] = from[at + each] ?? 0;
  }
}
