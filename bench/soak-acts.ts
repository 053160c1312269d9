/** What a Function meets: good requests and bad ones, clients that leave, bytes that are no HTTP. */
import { Agent, request } from "node:http";
import { connect } from "node:net";
import { WebSocket } from "ws";

export type Act = (port: number) => Promise<void>;

export const agent = new Agent({ keepAlive: true });
const post = (type: string, body: string): Act => ask("/", { "content-type": type }, body);
const traced = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
const event = { "ce-id": "1", "ce-type": "made", "ce-source": "/me", "ce-specversion": "1.0" };

export const acts: Act[] = [
  ask("/"),
  ask("/response"),
  ask("/", traced),
  post("application/json", JSON.stringify({ a: "x".repeat(1000) })),
  post("application/json", "{"),
  post("application/octet-stream", "x".repeat(2 * 1024 * 1024)),
  post("application/x-www-form-urlencoded", "a[b]=1&c=2"),
  ask("/", { "content-type": "application/json", ...event }, "{}"),
  ask("/", { ...event, "ce-id": "" }, ""),
  ask("/throw"),
  ask("/reject"),
  ask("/timer"),
  ask("/unhandled"),
  ask("/stream"),
  ask("/never"),
  leave("/stream"),
  leave("/never"),
  raw("GET / HTTP/1.1\r\nbroken\r\n\r\n"),
  raw("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
  converse,
];

/** One request, answered or not: what it gets is the tests' business. */
function ask(target: string, headers: Record<string, string> = {}, body?: string): Act {
  return (port) =>
    new Promise((resolve) => {
      const method = body === undefined ? "GET" : "POST";
      const options = { port, host: "127.0.0.1", path: target, method, headers, agent };
      const outgoing = request(options, (answer) => answer.resume().once("close", resolve));
      outgoing.once("error", () => resolve());
      outgoing.end(body);
    });
}

/** Goes away in the middle. */
function leave(target: string): Act {
  return async (port) => {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    socket.write(`GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await new Promise((resolve) => setTimeout(resolve, 10));
    socket.destroy();
  };
}

function raw(text: string): Act {
  return (port) =>
    new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      socket.once("close", () => resolve()).resume();
      socket.write(text);
      socket.setTimeout(3000, () => socket.destroy());
    });
}

async function converse(port: number): Promise<void> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/`);
  await new Promise<void>((resolve) => {
    let messages = 0;
    socket.on("open", () => socket.send("hello"));
    socket.on("message", () => (++messages < 20 ? socket.send("hello") : socket.close()));
    socket.on("error", () => {});
    socket.on("close", () => resolve());
  });
}
