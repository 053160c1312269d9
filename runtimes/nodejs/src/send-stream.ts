import { Readable } from "node:stream";
import { type FunctionResponse } from "./function-response.ts";

/**
 * Sends the chunks of an iterable one by one. An error before the first of them rejects with nothing sent. If the
 * client disconnects midway, only the iterable is notified: that is not a failure.
 */
export async function sendStream(
  response: FunctionResponse,
  stream: AsyncIterable<Uint8Array | string>,
): Promise<void> {
  const chunks = stream[Symbol.asyncIterator]();
  const stop = () => {
    if (stream instanceof Readable) stream.destroy();
    else void chunks.return?.().catch(() => {});
  };
  response.once("close", stop);
  try {
    for (;;) {
      const { done, value } = await chunks.next();
      if (response.destroyed) return;
      if (done) break;
      if (!response.write(value)) await drained(response);
    }
    response.off("close", stop);
    response.end();
  } catch (error) {
    if (response.destroyed) return;
    response.off("close", stop);
    stop();
    throw error;
  }
}

/**
 * Sends a stream of the web's. It is read by hand: what Node.js makes of one otherwise costs more than all the
 * rest of an answer.
 */
export async function sendWebStream(
  response: FunctionResponse,
  body: ReadableStream,
): Promise<void> {
  const reader = (body as ReadableStream<Uint8Array | string>).getReader();
  const cancel = () =>
    void reader.cancel(new Error("the client closed the connection")).catch(() => {});
  response.once("close", cancel);
  let { done, value } = await reader.read();
  while (!done) {
    if (response.destroyed) return;
    const next = reader.read();
    // Most bodies are one chunk, which goes out together with the head and its length.
    const isLast = !response.headersSent && (await isOver(next));
    if (isLast) {
      response.off("close", cancel);
      return void response.end(value);
    }
    if (!response.write(value)) await drained(response);
    ({ done, value } = await next);
  }
  response.off("close", cancel);
  response.end();
}

/** Whether the stream is known to be over, without waiting for it. */
async function isOver(next: Promise<{ done: boolean }>): Promise<boolean> {
  const soon = new Promise<undefined>((resolve) => setImmediate(resolve, undefined));
  return (await Promise.race([next, soon]))?.done ?? false;
}

/** Or the client has disconnected. */
function drained(response: FunctionResponse): Promise<void> | undefined {
  if (response.destroyed) return undefined;
  return new Promise((resolve) => {
    const go = () => {
      response.off("drain", go);
      response.off("close", go);
      resolve();
    };
    response.on("drain", go);
    response.on("close", go);
  });
}
