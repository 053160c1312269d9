import { once } from "node:events";
import { PassThrough, Readable, type Writable } from "node:stream";
import { channels, encodeFrame, readFrames } from "@spry/kube";
import { type CommandStream } from "./pod-stream.ts";

const bufferBytes = 256 * 1024;

/** A client's side of a running command, whatever protocol it speaks. */
export interface CommandClient {
  /** Hands over what comes; resolves when nothing more will. */
  receive(give: (channel: number, data: Uint8Array) => Promise<void>): Promise<void>;
  send(channel: number, data: Buffer): Promise<void>;
  /** The command has ended and its status has been sent. */
  end(): void;
}

/** A command that has been started on its node and waits for its client. */
export interface StartedCommand {
  carry(client: CommandClient): Promise<void>;
  abandon(): void;
}

/** Starts the command before the response, so that a failure can still be an HTTP response. */
export async function startCommand(stream: CommandStream): Promise<StartedCommand> {
  const abort = new AbortController();
  const input = new PassThrough({ highWaterMark: bufferBytes });
  input.on("error", () => {});
  const output = await stream.open(Readable.toWeb(input) as ReadableStream, abort.signal);
  const abandon = () => {
    abort.abort();
    input.destroy();
  };
  return {
    abandon,
    async carry(client) {
      // The client's end of sending is not the command's end; its connection's end is.
      void client
        .receive((channel, data) => write(input, encodeFrame(channel, data)))
        .then(() => input.end(), abandon);
      try {
        for await (const { channel, data } of readFrames(output)) {
          if (channel === channels.stdout && !stream.stdout) continue;
          if (channel === channels.stderr && !stream.stderr) continue;
          await client.send(channel, data);
        }
        client.end();
      } finally {
        abandon();
      }
    },
  };
}

export async function write(stream: Writable, data: Uint8Array): Promise<void> {
  if (stream.destroyed || stream.writableEnded) throw new Error("stream has ended");
  if (stream.write(data)) return;
  const closed = new AbortController();
  const onClose = () => closed.abort();
  stream.once("close", onClose);
  try {
    await once(stream, "drain", { signal: closed.signal });
  } finally {
    stream.off("close", onClose);
  }
}
