/** Calls of Functions from the console, and their responses. */
import { asUser } from "../api/client.ts";
import { type CallRequest, headersOf, sendsBody } from "./call-request.ts";

export interface CallAnswer {
  /** Milliseconds since 1970. */
  sentAt: number;
  status: number;
  headers: [name: string, value: string][];
  firstByteMs: number;
  totalMs?: number;
  /** The user has stopped it, or the connection has ended, before its end. */
  isCut?: boolean;
  /** Milliseconds that the request waited for a Pod to start. */
  coldStartMs?: number;
  /** The part of the body that has arrived, at most `maxKeptBytes`. */
  body: Uint8Array<ArrayBuffer>;
  /** Of the whole body so far. */
  bytes: number;
}

/** What exceeds this is counted but not kept. */
export const maxKeptBytes = 10 * 1024 ** 2;
/** Often enough for a stream to be seen as one. */
const reportMs = 50;

/** A request that has not been answered; `wasSent`: the Function may have got it all the same. */
export class CallError extends Error {
  readonly wasSent: boolean;

  constructor(message: string, wasSent: boolean) {
    super(message);
    this.wasSent = wasSent;
  }
}

/**
 * Sends a request to a Function; `onProgress` gets the response as it arrives. Resolves with what has arrived when the signal is
 * aborted or the connection ends after that; rejects with a `CallError` before.
 */
export async function callFunction(
  target: { namespace: string; name: string },
  request: CallRequest,
  onProgress: (answer: CallAnswer) => void,
  signal: AbortSignal,
): Promise<CallAnswer> {
  const begin = performance.now();
  const sentAt = Date.now();
  const { method, path, headers, body } = request;
  const head = { ...target, method, path, headers: headersOf(headers) };
  let response: Response;
  try {
    response = await asUser("/call", {
      method: "POST",
      body: `${JSON.stringify(head)}\n${sendsBody(request) ? body : ""}`,
      signal,
    });
  } catch (error) {
    throw new CallError(
      signal.aborted ? "it was stopped" : `the connection ended: ${(error as Error).message}`,
      true,
    );
  }
  if (!response.ok || !response.body) {
    const { message } = (await response.json().catch(() => ({}))) as { message?: string };
    const text = message ?? `the dashboard responded with ${response.status}`;
    // With these, the dashboard's server has refused it, and nothing has left it.
    throw new CallError(text, response.status >= 500);
  }
  const reader = response.body.getReader();
  let answer: CallAnswer | undefined;
  const received = new Received();
  let pending = new Uint8Array();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const current = (answer: CallAnswer) => ({ ...answer, ...received.state });
  // Without this, what arrives before a long pause would not be shown.
  const report = () => {
    timer ??= setTimeout(() => {
      timer = undefined;
      if (answer) onProgress(current(answer));
    }, reportMs);
  };
  let isCut = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (answer) received.add(value);
      else {
        pending = new Uint8Array([...pending, ...value]);
        const end = pending.indexOf(lineFeed);
        if (end < 0) continue;
        answer = answerOf(new TextDecoder().decode(pending.subarray(0, end)), sentAt);
        received.add(pending.subarray(end + 1));
      }
      report();
    }
  } catch {
    isCut = true;
  } finally {
    clearTimeout(timer);
  }
  if (!answer)
    throw new CallError(
      signal.aborted ? "it was stopped" : "the connection ended before a response arrived",
      true,
    );
  return { ...current(answer), totalMs: performance.now() - begin, ...(isCut && { isCut }) };
}

const lineFeed = 10;

/** The bytes of a body, of which no more than the limit is kept. */
class Received {
  #buffer = new Uint8Array(64 * 1024);
  #kept = 0;
  #bytes = 0;

  add(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    const part = bytes.subarray(0, Math.max(maxKeptBytes - this.#kept, 0));
    if (this.#kept + part.length > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(this.#buffer.length * 2, this.#kept + part.length));
      larger.set(this.#buffer.subarray(0, this.#kept));
      this.#buffer = larger;
    }
    this.#buffer.set(part, this.#kept);
    this.#kept += part.length;
  }

  get state(): Pick<CallAnswer, "body" | "bytes"> {
    return { body: this.#buffer.subarray(0, this.#kept), bytes: this.#bytes };
  }
}

function answerOf(line: string, sentAt: number): CallAnswer {
  const head = JSON.parse(line) as Pick<CallAnswer, "status" | "headers" | "firstByteMs">;
  const timing = head.headers.find(([name]) => name.toLowerCase() === "server-timing")?.[1] ?? "";
  const coldStart = /\bcoldstart;dur=([\d.]+)/.exec(timing)?.[1];
  return {
    ...head,
    sentAt,
    body: new Uint8Array(),
    bytes: 0,
    ...(coldStart !== undefined && { coldStartMs: Number(coldStart) }),
  };
}
