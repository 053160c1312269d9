import { spanJson } from "./otlp-json.ts";
import { type Span } from "./span.ts";

/** A span of the first generation of its trace, of which there are many that differ in little else than this. */
export interface PlainSpan {
  /** 32 digits of the trace and 16 of the span. */
  ids: string;
  startMs: number;
  endMs: number;
  /** As `descriptionJson` has it. */
  description: Buffer;
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
  addPlain({ ids, startMs, endMs, description }: PlainSpan): boolean {
    if (!this.#fits(plainLength + description.length)) return false;
    this.#begin();
    this.#copy(pieces.traceId);
    this.#copyDigits(ids, 0, 32);
    this.#copy(pieces.spanId);
    this.#copyDigits(ids, 32, 48);
    this.#copy(pieces.start);
    this.#writeTime(startMs);
    this.#copy(pieces.end);
    this.#writeTime(endMs);
    this.#copy(pieces.description);
    this.#copy(description);
    this.#bytes[this.#length++] = brace;
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

  #copy(bytes: Uint8Array): void {
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #copyDigits(text: string, begin: number, end: number): void {
    for (let at = begin; at < end; at++) this.#bytes[this.#length++] = text.charCodeAt(at);
  }

  /** Nanoseconds of which microseconds are known: 16 digits and three zeros, until the year 2286. */
  #writeTime(ms: number): void {
    const microseconds = Math.round(ms * 1000);
    const high = Math.floor(microseconds / 1e8);
    this.#writeDigits(high);
    this.#writeDigits(microseconds - high * 1e8);
    this.#bytes.fill(zero, this.#length, this.#length + 3);
    this.#length += 3;
  }

  #writeDigits(eight: number): void {
    let rest = eight;
    for (let at = this.#length + 7; at >= this.#length; at--) {
      const tenth = (rest / 10) | 0;
      this.#bytes[at] = zero + rest - tenth * 10;
      rest = tenth;
    }
    this.#length += 8;
  }
}

const [comma, brace, zero] = [0x2c, 0x7d, 0x30];

const pieces = {
  traceId: Buffer.from(`{"traceId":"`),
  spanId: Buffer.from(`","spanId":"`),
  start: Buffer.from(`","startTimeUnixNano":"`),
  end: Buffer.from(`","endTimeUnixNano":"`),
  description: Buffer.from(`",`),
};

const plainLength =
  Object.values(pieces).reduce((sum, { length }) => sum + length, 0) + 32 + 16 + 19 + 19 + 1;
