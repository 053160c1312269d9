import { logError } from "../log.ts";
import { rootContext, runWith } from "./context.ts";
import { HttpPoster } from "./http-post.ts";
import { type Span } from "./span.ts";
import { type PlainSpan, SpanBatch } from "./span-batch.ts";

const limits = { batchBytes: 512 * 1024, batches: 4, intervalMs: 1000, timeoutMs: 10_000 };

/**
 * Sends spans in batches, by OTLP in protobuf over HTTP: each second, or when half a megabyte is
 * full. What the collector has not taken yet is at most four of those. Spans beyond that are dropped.
 */
export class SpanExporter {
  readonly #url: URL;
  readonly #poster: HttpPoster;
  readonly #serviceName: string;
  readonly #sending = new Set<Promise<void>>();
  #current: SpanBatch | undefined;
  /** Kept, as a Function that fills one will fill another. */
  #spare: SpanBatch | undefined;
  #isTimed = false;
  #hasFailed = false;

  constructor(endpoint: string, serviceName: string) {
    this.#url = new URL(endpoint);
    if (this.#url.pathname === "/") this.#url.pathname = "/v1/traces";
    this.#poster = new HttpPoster(this.#url);
    this.#serviceName = serviceName;
  }

  /** Whether a span that begins now would be sent, as far as one can know. */
  get hasRoom(): boolean {
    return this.#current !== undefined || this.#sending.size < limits.batches;
  }

  readonly add = (span: Span): void => {
    if (!this.#batch()?.add(span)) this.#nextBatch()?.add(span);
  };

  addPlain(span: PlainSpan): void {
    if (!this.#batch()?.addPlain(span)) this.#nextBatch()?.addPlain(span);
  }

  /** Sends all that is there; settles when that is done, or has failed. */
  async flush(): Promise<void> {
    this.#send();
    await Promise.all(this.#sending);
  }

  /** Undefined when there is no room. */
  #batch(): SpanBatch | undefined {
    if (this.#current) return this.#current;
    if (this.#sending.size >= limits.batches) return undefined;
    this.#current = this.#spare ?? new SpanBatch(limits.batchBytes, this.#serviceName);
    this.#spare = undefined;
    if (!this.#isTimed) {
      this.#isTimed = true;
      setTimeout(() => {
        this.#isTimed = false;
        this.#send();
      }, limits.intervalMs).unref();
    }
    return this.#current;
  }

  /** A collector that fails is asked once a second only. */
  #nextBatch(): SpanBatch | undefined {
    if (this.#hasFailed || !this.#current) return undefined;
    this.#send();
    return this.#batch();
  }

  #send(): void {
    const batch = this.#current;
    if (!batch) return;
    this.#current = undefined;
    if (batch.isEmpty) return void (this.#spare = batch);
    // It is not part of the request whose span happened to be the last one.
    const sent = runWith(rootContext, () => this.#deliver(batch));
    this.#sending.add(sent);
    void sent.then(() => this.#sending.delete(sent));
  }

  async #deliver(batch: SpanBatch): Promise<void> {
    try {
      const body = batch.close();
      const contentType = "application/x-protobuf";
      await this.#poster.post({ contentType, body, timeoutMs: limits.timeoutMs });
      this.#hasFailed = false;
      batch.clear();
      this.#spare = batch;
    } catch (error) {
      // Its memory may still be on the way: it is not used again.
      if (!this.#hasFailed) logError(`exporting spans to ${this.#url.href}`, error);
      this.#hasFailed = true;
    }
  }
}
