import { PassThrough, Readable } from "node:stream";
import { messageOf } from "@spry/kube";
import { type WebSocket } from "ws";
import { write } from "./command-channels.ts";
import { type PortStream } from "./pod-stream.ts";

/** What clients other than kubectl speak: one connection per port, named in the query. */
export const portChannelProtocol = "v4.channel.k8s.io";

const normalClosure = 1000;

/**
 * Of the port at place n of the query, channel 2n carries the bytes and 2n + 1 what went wrong. Each
 * channel begins with the port's number (2 bytes, little endian).
 */
export async function forwardPortChannels(socket: WebSocket, target: PortStream): Promise<void> {
  const gone = new AbortController();
  const inputs = target.ports.map(() => new PassThrough().on("error", () => {}));
  socket.once("close", () => {
    gone.abort();
    for (const input of inputs) input.destroy();
  });
  const send = (channel: number, data: Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      const message = Buffer.concat([Buffer.from([channel]), data]);
      socket.send(message, (error) => (error ? reject(error) : resolve()));
    });
  socket.on("message", (message: Buffer) => {
    // Error channels belong to the server: a fraction is not an index.
    const input = inputs[(message[0] ?? 1) / 2];
    if (!input) return;
    // What cannot be taken yet stays in the connection.
    socket.pause();
    const resume = () => socket.resume();
    write(input, message.subarray(1)).then(resume, resume);
  });
  await Promise.allSettled(
    target.ports.map(async (port, index) => {
      const number = Buffer.alloc(2);
      number.writeUInt16LE(Number(port) & 0xffff);
      await send(2 * index, number);
      await send(2 * index + 1, number);
      try {
        const body = Readable.toWeb(inputs[index] ?? new PassThrough()) as ReadableStream;
        const answer = await target.open(port, body, gone.signal);
        for await (const data of answer) await send(2 * index, data);
      } catch (error) {
        await send(
          2 * index + 1,
          Buffer.from(`error forwarding port ${port}: ${messageOf(error)}`),
        );
      }
    }),
  );
  socket.close(normalClosure);
}
