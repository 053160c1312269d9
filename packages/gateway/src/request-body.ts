import { type IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { type Clock } from "@spry/kube";

/** What has been sent is remembered up to this size, so that it can be sent to another Pod. */
export const maxRepeatableBytes = 64 * 1024;

/**
 * A request's body on its way to a Pod, as a stream with backpressure. A client's request must
 * survive the failure of one attempt, so an attempt never gets the request's own stream.
 */
export class RequestBody {
  readonly #request: IncomingMessage;
  readonly #maxBytes: number;
  #sent: Buffer[] | undefined = [];
  #bytes = 0;
  #ended = false;
  #stream: Readable | undefined;

  constructor(request: IncomingMessage, maxBytes: number) {
    this.#request = request;
    this.#maxBytes = maxBytes;
    request.once("end", () => (this.#ended = true));
  }

  /** Whether another attempt could still send everything from the start. */
  get isRepeatable(): boolean {
    return this.#sent !== undefined;
  }
  get isTooLarge(): boolean {
    return this.#bytes > this.#maxBytes;
  }

  /** The whole body, for the next attempt; what the one before had is taken away. */
  open(): Readable {
    this.close();
    const request = this.#request;
    const stream = new Readable({
      read: () => void request.resume(),
      destroy: (error, callback) => {
        request.off("data", onData).off("end", onEnd);
        request.pause();
        callback(error);
      },
    });
    // Whoever reads it reports its failures; nobody may be left to listen when it is destroyed.
    stream.on("error", () => {});
    const onData = (chunk: Buffer) => {
      this.#remember(chunk);
      if (this.isTooLarge) stream.destroy(new Error("request body is too large"));
      else if (!stream.push(chunk)) request.pause();
    };
    const onEnd = () => stream.push(null);
    for (const chunk of this.#sent ?? []) stream.push(chunk);
    if (this.#ended) stream.push(null);
    else request.on("data", onData).on("end", onEnd).pause();
    this.#stream = stream;
    return stream;
  }

  /** Takes the request's stream back from the last attempt. */
  close(): void {
    this.#stream?.destroy();
  }

  #remember(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > maxRepeatableBytes) this.#sent = undefined;
    else this.#sent?.push(chunk);
  }
}

/**
 * A body that is announced as small, in one piece; undefined when the client went away, "stalled" when nothing of it came
 * for `stallMs`.
 */
export function collectBody(
  request: IncomingMessage,
  clock: Clock,
  stallMs: number,
): Promise<Buffer | "stalled" | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    const wait = () => clock.after(stallMs, () => resolve("stalled"));
    let stopWaiting = wait();
    request.on("data", (chunk: Buffer) => {
      chunks.push(chunk);
      stopWaiting();
      stopWaiting = wait();
    });
    request.once("end", () => {
      stopWaiting();
      resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
    });
    request.once("close", () => {
      stopWaiting();
      resolve(undefined);
    });
  });
}
