import { spanJson } from "./otlp-json.ts";
import { type Span } from "./span.ts";
import { type SpanTemplate } from "./span-template.ts";
import { idDigits, type SpanContext } from "./trace-context.ts";

/** A span of an invocation that nobody has added to, of which there are many that differ in little else than this. */
export interface PlainSpan {
  template: SpanTemplate;
  /** Whose digits from `at` on are its ids: of the trace, if it begins here, and of the span. */
  digits: Uint8Array;
  at: number;
  parent: SpanContext | undefined;
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
  readonly #headLength: number;
  readonly #tail: string;
  #length: number;

  constructor(size: number, { head, tail }: { head: string; tail: string }) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
    this.#headLength = this.#bytes.write(head);
    this.#tail = tail;
    this.#length = this.#headLength;
  }

  get isEmpty(): boolean {
    return this.#length === this.#headLength;
  }

  /** False when it does not fit any more. */
  add(span: Span): boolean {
    const json = spanJson(span);
    if (!this.#fits(Buffer.byteLength(json))) return false;
    this.#begin();
    this.#length += this.#bytes.write(json, this.#length);
    return true;
  }

  /** The same for the many that are all alike, at a tenth of the cost. */
  addPlain({ template, digits, at, parent, startMs, endMs }: PlainSpan): boolean {
    const { json, places } = template;
    if (!this.#fits(json.length)) return false;
    this.#begin();
    const begin = this.#length;
    this.#bytes.set(json, begin);
    this.#length += json.length;
    if (parent) {
      this.#writeText(parent.traceId, begin + places.traceId);
      this.#writeText(parent.spanId, begin + places.parentSpanId);
    } else this.#copy(digits, at, begin + places.traceId, idDigits.trace);
    this.#copy(digits, at + idDigits.trace, begin + places.spanId, idDigits.span);
    this.#writeTime(startMs, begin + places.start);
    this.#writeTime(endMs, begin + places.end);
    return true;
  }

  /** The whole body; the batch must not be written to until `clear`. */
  close(): Buffer {
    const end = this.#length + this.#bytes.write(this.#tail, this.#length);
    return this.#bytes.subarray(0, end);
  }

  clear(): void {
    this.#length = this.#headLength;
  }

  #fits(length: number): boolean {
    return this.#length + 1 + length + this.#tail.length <= this.#bytes.length;
  }

  #begin(): void {
    if (!this.isEmpty) this.#bytes[this.#length++] = comma;
  }

  #copy(from: Uint8Array, at: number, place: number, count: number): void {
    for (let each = 0; each < count; each++) this.#bytes[place + each] = from[at + each] ?? 0;
  }

  #writeText(digits: string, place: number): void {
    for (let at = 0; at < digits.length; at++) this.#bytes[place + at] = digits.charCodeAt(at);
  }

  /** Microseconds, of 16 digits until the year 2286. */
  #writeTime(ms: number, place: number): void {
    const microseconds = Math.round(ms * 1000);
    const high = Math.floor(microseconds / 1e8);
    this.#writeDigits(high, place);
    this.#writeDigits(microseconds - high * 1e8, place + 8);
  }

  #writeDigits(eight: number, place: number): void {
    let rest = eight;
    for (let at = place + 7; at >= place; at--) {
      const tenth = (rest / 10) | 0;
      this.#bytes[at] = zero + rest - tenth * 10;
      rest = tenth;
    }
  }
}

const [comma, zero] = [0x2c, 0x30];
