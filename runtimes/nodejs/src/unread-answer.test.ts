import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { endWhenUnread } from "./unread-answer.ts";

/** An answer that has begun, and its client, which has yet to read. */
async function begin() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
  client.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
  onTestFinished(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  const [, response] = (await once(server, "request")) as [unknown, ServerResponse];
  response.writeHead(200);
  return { client, response };
}

test("an answer that its client does not read is broken off", async () => {
  const { response } = await begin();
  endWhenUnread(response, 50);
  response.end(Buffer.alloc(64 * 1024 * 1024));
  await once(response, "close");
  expect(response.writableFinished).toBe(false);
});

test("an answer that has nothing to say goes on", async () => {
  const { client, response } = await begin();
  endWhenUnread(response, 50);
  await once(response, "timeout");
  response.end("at last");
  let text = "";
  client.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await expect.poll(() => text).toContain("at last");
});
