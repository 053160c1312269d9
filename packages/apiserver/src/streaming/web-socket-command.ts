import { type WebSocket } from "ws";
import { channels } from "@spry/kube";
import { type CommandClient } from "./command-channels.ts";

/** In order of preference; with v5 a client can say that its input has ended. */
export const commandProtocols = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

const normalClosure = 1000;

/** `v4` and `v5.channel.k8s.io`: each message is a channel's number and its bytes. */
export function webSocketCommandClient(socket: WebSocket): CommandClient {
  return {
    receive(give) {
      return new Promise((resolve, reject) => {
        socket.on("message", (message: Buffer) => {
          const [channel] = message;
          if (channel === undefined) return;
          // One at a time: what cannot be taken yet stays in the connection.
          socket.pause();
          give(channel, message.subarray(1)).then(() => socket.resume(), reject);
        });
        socket.once("close", () => reject(new Error("client has left")));
        // Messages may come only once their listener is registered.
        socket.resume();
      });
    },
    send(channel, data) {
      return new Promise((resolve, reject) => {
        const message = Buffer.concat([Buffer.from([channel]), data]);
        socket.send(message, (error) => (error ? reject(error) : resolve()));
      });
    },
    end: () => socket.close(normalClosure),
  };
}

/** Clients wait for a first message on some channel to know that the command runs. */
export function greet(socket: WebSocket, { stdout, stderr }: { stdout: boolean; stderr: boolean }) {
  const channel = stdout ? channels.stdout : stderr ? channels.stderr : channels.error;
  socket.send(Buffer.from([channel]));
}
