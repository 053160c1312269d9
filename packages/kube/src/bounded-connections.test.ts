import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { boundConnections } from "./bounded-connections.ts";

let server: Server;
/** The paths of requests whose heads have arrived. */
let begun: string[];
/** Answers the requests that wait for it. */
let answers: (() => void)[];
beforeEach(async () => {
  begun = [];
  answers = [];
  server = createServer((request, response) => {
    begun.push(request.url ?? "");
    request.resume();
    if (request.url === "/wait") answers.push(() => response.end());
    else request.once("end", () => response.end("ok"));
  });
  server.on("upgrade", (request, socket) => {
    begun.push(request.url ?? "");
    socket.write("HTTP/1.1 101 Switching Protocols\r\n\r\n");
  });
  boundConnections(server, { total: 8, ofAddress: 5 });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** A connection that has sent `text` from one of the machine's loopback addresses. */
async function client(text: string, localAddress = "127.0.0.1") {
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  const accepted = once(server, "connection");
  await once(socket, "connect");
  await accepted;
  let received = "";
  socket.on("data", (chunk: Buffer) => (received += chunk.toString()));
  if (text !== "") socket.write(text);
  return { socket, received: () => received, closed: () => isClosed(socket) };
}
const isClosed = (socket: Socket) => socket.closed || socket.readableEnded;
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const half = "GET / HTTP/1.1\r\nHo";
const body = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12";

test("slow heads of one address make room for its next client, the oldest first", async () => {
  const slow = [];
  for (let i = 0; i < 5; i++) slow.push(await client(half));
  const next = await client(get("/next"));
  await expect.poll(next.received).toContain("200 OK");
  expect(slow.map(({ closed }) => closed())).toEqual([true, false, false, false, false]);
});

test("a thousand slow heads keep no client away", async () => {
  for (let i = 0; i < 1000; i++) {
    await client(half);
    if (i % 100 === 0) await expect.poll((await client(get("/"))).received).toContain("200 OK");
  }
});

test("slow heads of all addresses together make room for another address", async () => {
  const slow = [];
  for (let i = 0; i < 8; i++) slow.push(await client(half, `127.0.0.${2 + (i % 2)}`));
  const next = await client(get("/next"), "127.0.0.9");
  await expect.poll(next.received).toContain("200 OK");
  expect(slow.filter(({ closed }) => closed())).toEqual([slow[0]]);
});

test("a slow body is closed only when no head is missing", async () => {
  const bodies = [await client(body), await client(body)];
  await expect.poll(() => begun.length).toBe(2);
  const heads = [await client(half), await client(half), await client(half)];
  for (let i = 0; i < 3; i++) {
    await client(get("/wait"));
    await expect.poll(() => answers.length).toBe(i + 1);
  }
  await expect.poll(() => heads.every(({ closed }) => closed())).toBe(true);
  expect(bodies.map(({ closed }) => closed())).toEqual([false, false]);
  await client(get("/wait"));
  await expect.poll(() => bodies.map(({ closed }) => closed())).toEqual([true, false]);
});

test("requests under way and tunnels are never closed for others, which are refused", async () => {
  const busy = [];
  for (let i = 0; i < 4; i++) busy.push(await client(get("/wait")));
  await expect.poll(() => answers.length).toBe(4);
  const upgrade = "GET /tunnel HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
  busy.push(await client(upgrade));
  await expect.poll(() => begun).toContain("/tunnel");
  const refused = await client(get("/refused"));
  await expect.poll(refused.closed).toBe(true);
  expect(busy.some(({ closed }) => closed())).toBe(false);
  expect(begun).not.toContain("/refused");
});

test("a connection that has been answered waits again, behind those that came before", async () => {
  const first = await client(get("/wait"));
  await expect.poll(() => answers.length).toBe(1);
  const slow = [];
  for (let i = 0; i < 4; i++) slow.push(await client(half));
  answers[0]!();
  await expect.poll(first.received).toContain("200 OK");
  await expect.poll((await client(get("/"))).received).toContain("200 OK");
  expect(first.closed()).toBe(false);
  expect(slow[0]!.closed()).toBe(true);
});
