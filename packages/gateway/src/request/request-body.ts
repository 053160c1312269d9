import { Readable } from "node:stream";
import { type Clock } from "@spry/kube";
import { type ClientRequest, hasBody } from "../http/client-side.ts";

/** A body is kept up to this size while it is sent, so that it can be sent again to another Pod. */
export const maxReplayableBytes = 64 * 1024;
/** Of what an attempt has not read yet. */
const highWaterMark = 16 * 1024;

/** The memory for the copy that is kept. */
export interface ReplayMemory {
  /** False: there is none left for so many bytes more. */
  take: (bytes: number) => boolean;
  /** All that was taken; without a copy the request cannot be sent again. */
  giveBack: () => void;
}

/**
 * A request's body on its way to a Pod, as a stream with backpressure. A client's request must
 * survive the failure of one attempt, so an attempt never gets the request's own stream.
 */
export class RequestBody {
  readonly #request: ClientRequest;
  readonly #maxBytes: number;
  readonly #memory: ReplayMemory;
  #sent: Buffer[] | undefined = [];
  #bytes = 0;
  #ended = false;
  #stream: Readable | undefined;

  constructor(request: ClientRequest, maxBytes: number, memory: ReplayMemory) {
    this.#request = request;
    this.#maxBytes = maxBytes;
    this.#memory = memory;
    request.once("end", () => (this.#ended = true));
  }

  /** Whether another attempt could still send everything from the start. */
  get isReplayable(): boolean {
    return this.#sent !== undefined;
  }
  get isTooLarge(): boolean {
    return this.#bytes > this.#maxBytes;
  }

  /** The whole body, for the next attempt; the stream of the previous one is closed. */
  open(): Readable {
    this.close();
    const request = this.#request;
    const stream = new Readable({
      highWaterMark,
      read: () => void request.resume(),
      destroy: (error, callback) => {
        request.off("data", onData).off("end", onEnd);
        request.pause();
        callback(error);
      },
    });
    // Its reader reports failures; it may have no listeners left when it is destroyed.
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
    if (!this.#sent) return;
    if (this.#bytes <= maxReplayableBytes && this.#memory.take(chunk.length)) {
      this.#sent.push(chunk);
      return;
    }
    this.#sent = undefined;
    this.#memory.giveBack();
  }
}

export interface CollectLimits {
  clock: Clock;
  /** Without a byte. */
  stallMs: number;
  /** For the whole body, however steadily it is received. */
  totalMs: number;
  /** Asked before bytes are kept; false: the memory budget is used up. */
  mayKeep: (bytes: number) => boolean;
}

/**
 * A body that is announced as small, in one piece; undefined when the client has left. "stalled": nothing of it was received
 * for `stallMs`; "slow": it was not complete after `totalMs`; "full": the memory budget is used up.
 */
export function collectBody(
  request: ClientRequest,
  { clock, stallMs, totalMs, mayKeep }: CollectLimits,
): Promise<Buffer | "stalled" | "slow" | "full" | undefined> {
  return new Promise((settle) => {
    const chunks: Buffer[] = [];
    let isKept = true;
    const resolve = (outcome: Buffer | "stalled" | "slow" | "full" | undefined) => {
      if (outcome instanceof Buffer) return settle(outcome);
      // What is received after the response is not kept.
      isKept = false;
      chunks.length = 0;
      stopWaiting();
      stopTotal();
      settle(outcome);
    };
    const stopTotal = clock.after(totalMs, () => resolve("slow"));
    const wait = () => clock.after(stallMs, () => resolve("stalled"));
    let stopWaiting = wait();
    request.on("data", (chunk: Buffer) => {
      if (!isKept) return;
      if (!mayKeep(chunk.length)) return resolve("full");
      chunks.push(chunk);
      stopWaiting();
      stopWaiting = wait();
    });
    request.once("end", () => {
      if (!isKept) return;
      stopWaiting();
      stopTotal();
      resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
    });
    request.once("close", () => resolve(undefined));
  });
}

/** Node.js reads so much of a body ahead of its reader, and no more. */
const readAheadBytes = 64 * 1024;

/** About how much memory a request takes while it waits: its head, and what of its body is read ahead. */
export function heldBytes(request: ClientRequest, body: Buffer | RequestBody | undefined): number {
  let bytes = (request.url ?? "").length;
  for (const each of request.rawHeaders) bytes += each.length;
  if (body instanceof Buffer) return bytes + body.length;
  const { "content-length": length } = request.headers;
  if (length !== undefined) return bytes + Math.min(Number(length), readAheadBytes);
  return hasBody(request) ? bytes + readAheadBytes : bytes;
}
