import { PassThrough, Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { messageOf } from "@spry/kube";
import { type PortStream } from "./pod-stream.ts";
import { type SpdyStream } from "./spdy-stream.ts";

const maxWaiting = 1_000;

interface Pair {
  data?: SpdyStream;
  error?: SpdyStream;
}

/**
 * `portforward.k8s.io`: for each connection the client opens two streams with the same request id, one for its bytes
 * and one for errors.
 */
export function forwardPorts(target: PortStream): (stream: SpdyStream) => void {
  const waiting = new Map<string, Pair>();
  return (stream) => {
    const { headers } = stream;
    const kind = headers.get("streamtype");
    const port = headers.get("port") ?? "";
    const id = headers.get("requestid") ?? port;
    if ((kind !== "data" && kind !== "error") || waiting.size >= maxWaiting) {
      stream.destroy();
      return;
    }
    const pair = waiting.get(id) ?? {};
    if (pair[kind]) return void stream.destroy();
    pair[kind] = stream;
    waiting.set(id, pair);
    stream.once("close", () => waiting.get(id) === pair && waiting.delete(id));
    const { data, error } = pair;
    if (!data || !error) return;
    waiting.delete(id);
    void forward(target, port, data, error);
  };
}

async function forward(
  target: PortStream,
  port: string,
  data: SpdyStream,
  error: SpdyStream,
): Promise<void> {
  const gone = new AbortController();
  data.once("close", () => gone.abort());
  // Its client says nothing there; read, so that it can end.
  error.resume();
  try {
    // A stream of its own: one direction may end while the other continues.
    const sent = Readable.toWeb(data.pipe(new PassThrough())) as ReadableStream;
    const answer = await target.open(port, sent, gone.signal);
    await pipeline(Readable.fromWeb(answer as never), data, { end: true });
  } catch (cause) {
    if (!error.destroyed) error.write(`error forwarding port ${port}: ${messageOf(cause)}`);
    data.end();
  }
  error.end();
}
