import { type Duplex } from "node:stream";
import { channels } from "@spry/kube";
import { type CommandClient, write } from "./command-channels.ts";
import { type CommandStream } from "./pod-stream.ts";
import { SpdySession } from "./spdy-session.ts";
import { type SpdyStream } from "./spdy-stream.ts";

export const spdyCommandProtocols = ["v4.channel.k8s.io"];

const openTimeoutMs = 30_000;
type Name = "stdin" | "stdout" | "stderr" | "error" | "resize";

/** Waits for the streams that a client opens for a command: one per channel, named by `streamtype`. */
export async function spdyCommandClient(
  connection: Duplex,
  wanted: CommandStream,
): Promise<CommandClient> {
  const names = (["stdin", "stdout", "stderr"] as const).filter((name) => wanted[name]);
  const expected = new Set<Name>([...names, "error", ...(wanted.tty ? ["resize" as const] : [])]);
  const streams = new Map<Name, SpdyStream>();
  const ended = Promise.withResolvers<void>();
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error("client has not opened the streams of its command in time"));
      connection.destroy();
    }, openTimeoutMs);
    const session = new SpdySession(connection, (stream) => {
      const name = stream.headers.get("streamtype") as Name;
      if (!expected.has(name) || streams.has(name)) return void stream.destroy();
      streams.set(name, stream);
      if (streams.size === expected.size) {
        clearTimeout(timer);
        resolve();
      }
    });
    session.run().then(
      () => ended.reject(new Error("client has left")),
      (error: unknown) => ended.reject(error as Error),
    );
    ended.promise.catch((error: unknown) => {
      clearTimeout(timer);
      reject(error);
    });
  });
  return clientOf(connection, streams, ended.promise);
}

function clientOf(
  connection: Duplex,
  streams: ReadonlyMap<Name, SpdyStream>,
  ended: Promise<void>,
): CommandClient {
  return {
    async receive(give) {
      const pass = async (name: "stdin" | "resize") => {
        const stream = streams.get(name);
        stream?.on("data", (data: Buffer) => {
          stream.pause();
          give(channels[name], data).then(
            () => stream.resume(),
            () => stream.destroy(),
          );
        });
        if (name !== "stdin") return;
        stream?.once("end", () => {
          give(channels.close, Buffer.from([channels.stdin])).catch(() => {});
        });
      };
      await Promise.all([pass("stdin"), pass("resize"), ended]);
    },
    async send(channel, data) {
      const name = (["stdout", "stderr", "error"] as const).find(
        (each) => channels[each] === channel,
      );
      const stream = name && streams.get(name);
      if (stream && !stream.destroyed) await write(stream, data);
    },
    end() {
      const ends = [...streams.values()].map(
        (stream) => new Promise<void>((resolve) => stream.end(() => resolve())),
      );
      void Promise.all(ends).then(() => connection.end());
    },
  };
}
