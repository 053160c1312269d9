import { type ServerResponse } from "node:http";
import { type CountsLine, knative } from "@spry/function";
import { ManualClock } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, countsToken, startBench } from "./testing/bench.ts";

let bench: Bench;
let clock: ManualClock;
let stopListening: () => Promise<void>;
/** Lines of the stream so far; an empty one is `undefined`. */
let lines: (CountsLine | undefined)[];

beforeEach(async () => {
  clock = new ManualClock(1_000);
  bench = await startBench({ withKnative: true, clock });
  await bench.knative.revision("a");
  await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
  await bench.heard();
  ({ lines, stop: stopListening } = await listen());
});
afterEach(async () => {
  await stopListening();
  const closing = bench.close();
  await clock.advance(60_000);
  await closing;
});

async function listen() {
  const admin = await bench.kit.listenAdmin({ host: "127.0.0.1", port: 0 });
  const abort = new AbortController();
  const response = await fetch(`http://127.0.0.1:${admin.port}/counts`, {
    headers: { authorization: `Bearer ${countsToken}` },
    signal: abort.signal,
  });
  const received: (CountsLine | undefined)[] = [];
  const reading = (async () => {
    let rest = "";
    for await (const chunk of response.body ?? []) {
      const parts = (rest + Buffer.from(chunk as Uint8Array).toString()).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) received.push(part ? (JSON.parse(part) as CountsLine) : undefined);
    }
  })().catch(() => {});
  const stop = async () => {
    abort.abort();
    await reading;
    const closing = admin.close();
    await clock.advance(1_000);
    await closing;
  };
  await expect.poll(() => received.length).toBe(2);
  return { lines: received, stop };
}

/** The next line, which has an empty one before it when a second has passed. */
async function next(): Promise<CountsLine | undefined> {
  await expect.poll(() => lines.filter(Boolean).length).toBeGreaterThan(0);
  while (lines[0] === undefined) lines.shift();
  return lines.shift();
}

test("a line for each Revision at first, then as counts change: totals are exact", async () => {
  const first = await next();
  expect(first).toEqual({
    gateway: expect.any(String) as string,
    revision: "default/a",
    at: 1_000,
    active: 0,
    waiting: 0,
    requests: 0,
    load: 0,
  });
  lines.length = 0;
  // At once: no time passes.
  const call = bench.call();
  expect(await next()).toMatchObject({ at: 1_000, active: 0, waiting: 1, requests: 1, load: 0 });
  await clock.advance(400);
  const other = bench.call();
  expect(await next()).toMatchObject({ at: 1_400, waiting: 2, requests: 2, load: 400 });
  await clock.advance(600);
  expect(await next()).toMatchObject({ at: 2_000, waiting: 2, requests: 2, load: 1_600 });
  const held: ServerResponse[] = [];
  const pod = await bench.pod((_, response) => void held.push(response));
  await bench.revisionPods("a", [pod]);
  await expect.poll(() => held.length).toBe(2);
  await clock.advance(500);
  held[0]?.end();
  await Promise.race([call, other]);
  await clock.advance(500);
  expect(await next()).toMatchObject({ at: 3_000, active: 1, waiting: 0, load: 3_100 });
  // While a request lasts its load grows, though nothing changes.
  await clock.advance(1_000);
  expect(await next()).toMatchObject({ at: 4_000, active: 1, waiting: 0, load: 4_100 });
  held[1]?.end();
  await Promise.all([call, other]);
  await clock.advance(1_000);
  expect(await next()).toMatchObject({
    at: 5_000,
    active: 0,
    waiting: 0,
    requests: 2,
    load: 4_100,
  });
  await clock.advance(3_000);
  // The first of them ends the second before.
  await expect.poll(() => lines).toEqual([undefined, undefined, undefined, undefined]);
});

test("requests for a Revision with Pods are reported once a second", async () => {
  await next();
  await bench.revisionPods("a", [await bench.pod((_, response) => response.end())]);
  lines.length = 0;
  for (let i = 0; i < 20; i++) await bench.call();
  await clock.advance(1_000);
  await clock.advance(1_000);
  await expect.poll(() => lines.filter((line) => line === undefined).length).toBe(2);
  expect(lines.filter(Boolean)).toMatchObject([{ requests: 20, active: 0, waiting: 0, load: 0 }]);
});

test("requests that wait are reported at once when the last Pod is lost", async () => {
  await next();
  await bench.knative.revision("b", { containerConcurrency: 1 });
  await bench.knative.route("hello", [{ revisionName: "b", percent: 100 }]);
  const held: ServerResponse[] = [];
  await bench.revisionPods("b", [await bench.pod((_, response) => void held.push(response))]);
  const first = bench.call();
  await expect.poll(() => held.length).toBe(1);
  const second = bench.call();
  await bench.heard();
  lines.length = 0;
  await bench.revisionPods("b", []);
  expect(await next()).toMatchObject({ revision: "default/b", active: 1, waiting: 1 });
  await bench.revisionPods("b", [await bench.pod((_, response) => response.end())]);
  held[0]?.end();
  for (const call of [first, second]) expect((await call).status).toBe(200);
});

test("a client that leaves and a Revision that a Route leaves are counted out", async () => {
  await next();
  lines.length = 0;
  const abort = new AbortController();
  const url = `http://127.0.0.1:${bench.port}/`;
  const leaving = fetch(url, { signal: abort.signal }).catch(() => {});
  await leaving;
  const call = bench.call();
  expect(await next()).toMatchObject({ revision: "default/a", waiting: 1 });
  await bench.knative.revision("b");
  await bench.knative.route("hello", [{ revisionName: "b", percent: 100 }]);
  expect(await next()).toMatchObject({ revision: "default/b", waiting: 1, requests: 1 });
  await clock.advance(1_000);
  expect(await next()).toMatchObject({ revision: "default/a", waiting: 0, requests: 1 });
  await bench.client.delete(knative.routes, { name: "hello", namespace: "default" });
  expect((await call).status).toBe(404);
});

test("totals go on where they were when a Revision comes back to a Route", async () => {
  await next();
  await bench.revisionPods("a", [await bench.pod((_, response) => response.end())]);
  await bench.call();
  await bench.knative.revision("b");
  await bench.knative.route("hello", [{ revisionName: "b", percent: 100 }]);
  await bench.heard();
  await bench.knative.route("hello", [{ revisionName: "a", percent: 100 }]);
  await bench.heard();
  await bench.call();
  lines.length = 0;
  await clock.advance(1_000);
  await expect
    .poll(() => lines)
    .toContainEqual(expect.objectContaining({ revision: "default/a", requests: 2 }));
});
