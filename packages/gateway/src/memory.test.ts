/** What requests may take of the gateway's memory, and of its connections, all together. */
import { once } from "node:events";
import { ManualClock } from "@spry/kube";
import { afterEach, expect, test } from "vitest";
import { type CallAcceptor } from "./index.ts";
import { type Bench, bodyOf, startBench } from "./testing/bench.ts";

let bench: Bench;
afterEach(() => bench.close());

const post = (length: number, name = "hello") =>
  `POST / HTTP/1.1\r\nhost: ${name}.default.localhost\r\nconnection: close\r\ncontent-length: ${length}\r\n\r\n`;

test("small bodies on their way have a bound for all, and leave some of it to other Functions", async () => {
  bench = await startBench({ maxHeldBytes: 30_000 });
  const pod = await bench.pod(async (request, response) => response.end(await bodyOf(request)));
  for (const name of ["hello", "other"]) {
    await bench.service(name);
    await bench.endpoints([pod], [], name);
  }
  // Incomplete: each keeps what it has sent.
  const held = await Promise.all([1, 2, 3].map(() => bench.raw()));
  for (const socket of held) socket.write(post(5_000) + "a".repeat(4_900));
  await new Promise((resolve) => setTimeout(resolve, 100));
  const refused = await bench.exchange(post(5_000) + "a".repeat(5_000));
  expect(refused).toMatch(/^HTTP\/1.1 503 /);
  expect(refused.toLowerCase()).toContain("retry-after: 1");
  expect(refused).toContain("x-spry-reason: GatewayOverloaded");
  expect(await bench.exchange(post(5_000, "other") + "b".repeat(5_000))).toMatch(/200 OK[^]*b$/);
  for (const socket of held) socket.destroy();
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await bench.exchange(post(5_000) + "a".repeat(5_000))).toMatch(/^HTTP\/1.1 200 /);
});

test("so have streamed bodies, which go on without a copy for another attempt", async () => {
  bench = await startBench({ maxHeldBytes: 30_000 });
  const pod = await bench.pod(async (request, response) => {
    response.end(String((await bodyOf(request)).length));
  });
  await bench.service();
  await bench.endpoints([pod]);
  const head = `POST / HTTP/1.1\r\nhost: hello.default.localhost\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n`;
  const chunk = `${(4_900).toString(16)}\r\n${"a".repeat(4_900)}\r\n`;
  const streams = await Promise.all(Array.from({ length: 6 }, () => bench.raw()));
  for (const socket of streams) socket.write(head + chunk);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const small = () => bench.exchange(post(5_000) + "a".repeat(5_000));
  expect(await small()).toContain("x-spry-reason: GatewayOverloaded");
  for (const socket of streams) {
    const answer = bodyOf(socket);
    socket.write(`${chunk}0\r\n\r\n`);
    expect((await answer).toString()).toMatch(/^HTTP\/1.1 200 [^]*9800/);
  }
  expect(await small()).toMatch(/^HTTP\/1.1 200 /);
});

test("lines of several destinations have one bound together", async () => {
  bench = await startBench({ maxHeldBytes: 2_000 });
  await bench.fn();
  const waiting = Array.from({ length: 8 }, () =>
    bench.call({ headers: { "x-fill": "a".repeat(400) } }),
  );
  const refused = await Promise.race(waiting);
  expect(refused).toMatchObject({ status: 503, headers: { "x-spry-reason": "GatewayOverloaded" } });
  await bench.service();
  await bench.endpoints([await bench.pod((_, response) => response.end("ok"))]);
  const statuses = (await Promise.all(waiting)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(2);
});

test("a small body that drips has a time limit as a whole", async () => {
  const clock = new ManualClock(1_000);
  bench = await startBench({ clock, bodyStallMs: 60, bodyTotalMs: 100 });
  await bench.service();
  await bench.endpoints([await bench.pod((_, response) => response.end())]);
  const socket = await bench.raw();
  socket.write(post(100));
  const answer = bodyOf(socket);
  for (let i = 0; i < 6; i++) {
    await new Promise((resolve) => setTimeout(resolve, 30));
    socket.write("a");
    await new Promise((resolve) => setTimeout(resolve, 30));
    await clock.advance(20);
  }
  expect((await answer).toString()).toMatch(/^HTTP\/1.1 408 [^]*within 0.1 s/);
  const closing = clock.advance(60_000);
  await bench.gateway.close();
  await closing;
});

test("no address gets all connections: with requests under way on all of its own, the next one is refused", async () => {
  bench = await startBench({ maxConnectionsOfAddress: 2 });
  const answers: (() => void)[] = [];
  const pod = await bench.pod((_, response) => answers.push(() => response.end()));
  await bench.service();
  await bench.endpoints([pod]);
  const held = [bench.call({}), bench.call({})];
  await expect.poll(() => answers.length).toBe(2);
  const third = await bench.raw();
  await once(third.resume(), "end");
  for (const answer of answers) answer();
  await Promise.all(held);
});

test("connections that send no request make room for those that do", async () => {
  bench = await startBench({ maxConnectionsOfAddress: 2 });
  const first = await bench.raw();
  await bench.raw();
  const ended = once(first, "end");
  const third = await bench.exchange("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  expect(third).toMatch(/^HTTP\/1.1 404 /);
  await ended;
});

test("bodies of calls that may wait count with the others, until they have been accepted", async () => {
  const accepting: { take: (bytes: number) => boolean; finish: () => void }[] = [];
  const calls: CallAcceptor = {
    accept: async ({ takeMemory, response }) => {
      accepting.push({
        take: takeMemory,
        finish: () => void response.writeHead(202, { "content-length": "0" }).end(),
      });
    },
    report: async () => {},
  };
  bench = await startBench({ maxHeldBytes: 30_000, calls });
  await bench.service();
  const headers = { prefer: "respond-async" };
  const first = bench.call({ headers });
  await expect.poll(() => accepting.length).toBe(1);
  const [one] = accepting;
  expect([one?.take(14_000), one?.take(5_000)]).toEqual([true, false]);
  const second = bench.call({ headers });
  await expect.poll(() => accepting.length).toBe(2);
  expect(accepting[1]?.take(10_000)).toBe(false);
  one?.finish();
  expect((await first).status).toBe(202);
  await expect.poll(() => accepting[1]?.take(10_000)).toBe(true);
  expect(one?.take(1)).toBe(false);
  accepting[1]?.finish();
  await second;
});
