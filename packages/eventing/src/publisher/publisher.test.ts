import { mkdtempSync } from "node:fs";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { silentLogger } from "@spry/kube";
import { openSqliteQueue, type Queue } from "@spry/queue";
import { afterEach, beforeEach, expect, test } from "vitest";
import { EventingMetrics } from "../metrics.ts";
import { createPublisher } from "./publisher.ts";

let queue: Queue;
let server: ReturnType<typeof createPublisher>;
let port = 0;
const sockets: Socket[] = [];
const logged: string[] = [];

beforeEach(async () => {
  queue = await openSqliteQueue({ directory: mkdtempSync(path.join(tmpdir(), "publisher-")) });
  const log = { ...silentLogger, error: (_: unknown, text: string) => void logged.push(text) };
  server = createPublisher({ queue: () => queue, metrics: new EventingMetrics(), log });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ({ port } = server.address() as AddressInfo);
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.close();
  await queue.close();
});

const structured = { "content-type": "application/cloudevents+json" };
const publish = async (body: string) =>
  (await fetch(`http://127.0.0.1:${port}/publish`, { method: "POST", headers: structured, body }))
    .status;

/** A batch of which all but the end has been sent; `answer` resolves with the publisher's response, if any. */
function unfinished(): { sent: Promise<void>; answer: Promise<string> } {
  const socket = connect(port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => {});
  const length = 7 * 1024 ** 2;
  const head = `POST /publish HTTP/1.1\r\nhost: x\r\ncontent-type: application/cloudevents-batch+json\r\ncontent-length: ${length}\r\n\r\n`;
  const answer = new Promise<string>((resolve) => {
    socket.once("data", (data) => resolve(data.toString("latin1")));
  });
  const sent = new Promise<void>((resolve) => {
    socket.write(head);
    socket.write(Buffer.alloc(length - 1, " "), () => resolve());
  });
  return { sent, answer };
}

test("bodies that are never finished take a part of the memory, and are refused beyond", async () => {
  const all = Array.from({ length: 12 }, () => unfinished());
  const answers = all.map(({ answer }) => answer);
  const first = await Promise.race(answers);
  expect(first).toMatch(/^HTTP\/1\.1 503 /);
  expect(first).toContain("retry-after: 1");
  for (const socket of sockets.splice(0)) socket.destroy();
  // Their memory is free again, and clients that have disconnected are not logged as errors.
  const event = { specversion: "1.0", id: "1", source: "/s", type: "t.v1", data: 1 };
  await expect.poll(() => publish(JSON.stringify(event)), { timeout: 20_000 }).toBe(204);
  expect(logged).toEqual([]);
});

test("JSON that is nested too deeply is refused with a sentence", async () => {
  const deep = "[".repeat(100_000) + "]".repeat(100_000);
  expect(await publish(`{"data":${deep}}`)).toBe(400);
});
