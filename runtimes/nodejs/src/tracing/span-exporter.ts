import { logError } from "../log.ts";
import { toOtlpJson } from "./otlp-json.ts";
import { type Span } from "./span.ts";

const limits = { queued: 4096, perRequest: 512, intervalMs: 1000, timeoutMs: 10_000 };

/**
 * Sends spans in batches, in OTLP's JSON form over HTTP: at most 4096 a second, which is as much as
 * leaves the Function its processor. Drops what is more, and what the collector does not take.
 */
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

  /** Whether a span that begins now would be sent, as far as one can know. */
  get hasRoom(): boolean {
    return this.#queue.length < (this.#hasFailed ? limits.perRequest : limits.queued);
  }

  readonly add = (span: Span): void => {
    if (this.hasRoom) this.#queue.push(span);
  };

  /** Sends all that is queued; settles when that is done, or has failed. */
  async flush(): Promise<void> {
    this.#sending ??= this.#sendAll().finally(() => (this.#sending = undefined));
    await this.#sending;
  }

  /** Those that are there now. */
  async #sendAll(): Promise<void> {
    const queue = this.#queue;
    this.#queue = [];
    for (let sent = 0; sent < queue.length; sent += limits.perRequest) {
      const spans = queue.slice(sent, sent + limits.perRequest);
      try {
        await post(this.#url, toOtlpJson(spans, this.#serviceName));
        this.#hasFailed = false;
      } catch (error) {
        if (!this.#hasFailed) logError(`exporting spans to ${this.#url.href}`, error);
        this.#hasFailed = true;
        return;
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
