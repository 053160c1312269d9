/** Answers to requests whose bodies nothing reads, on connections that end with them. */
import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { startFunction } from "./testing/running-function.ts";

const length = 200_000;

/** A client that has sent the beginning of a body and has its answer. */
async function answered(url: string, method: string, type = "text/plain") {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  const errors: string[] = [];
  socket.on("error", (error) => errors.push(error.message));
  socket.write(
    `${method} / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: ${type}\r\ncontent-length: ${length}\r\n\r\n`,
  );
  socket.write("x".repeat(1000));
  const [head] = (await once(socket, "data")) as [Buffer];
  socket.resume();
  const ended = new Promise((resolve) => socket.once("end", resolve));
  const closed = new Promise((resolve) => socket.once("close", resolve));
  return { socket, errors, head: head.toString(), ended, closed };
}

const multipart = "multipart/form-data; boundary=x";
test.each([
  ["a handler of event and context", "exports.main = () => 'early';", "POST", multipart],
  ["the same, asked for the head", "exports.main = () => 'early';", "HEAD", multipart],
  [
    "a handler of requests",
    "export default { fetch: () => new Response('early') };",
    "POST",
    "text/plain",
  ],
  [
    "an application",
    "require('node:http').createServer((_, response) => response.end('early')).listen(3000);",
    "PUT",
    "text/plain",
  ],
])(
  "%s answers before the body has come: the rest of it can be sent",
  async (_, source, method, type) => {
    const isModule = source.startsWith("export default");
    const { url } = await startFunction({ [isModule ? "handler.mjs" : "handler.js"]: source });
    const { socket, errors, head, ended, closed } = await answered(url, method, type);
    expect(head).toMatch(/^HTTP\/1\.1 200 OK/);
    for (let left = length - 1000; left > 0; left -= 19_900) {
      socket.write("x".repeat(19_900));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    socket.end();
    await Promise.all([ended, closed]);
    expect(errors).toEqual([]);
  },
);

test("a body that goes on for seconds after the answer is not waited for", async () => {
  const { url } = await startFunction("exports.main = () => 'early';");
  const { socket, closed } = await answered(url, "POST", multipart);
  const dripping = setInterval(() => socket.write("x"), 100);
  await closed;
  clearInterval(dripping);
}, 20_000);
