import { createApiServer } from "@spry/apiserver";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KubeClient } from "./client.ts";
import { sleep } from "./clock.ts";
import { runAsLeader } from "./leader-election.ts";
import { ManualClock } from "./manual-clock.ts";
import { resources } from "./resources.ts";
import { type Transport } from "./transport.ts";

let server: Awaited<ReturnType<typeof createApiServer>>;
let clock: ManualClock;
const stops: AbortController[] = [];

beforeEach(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  clock = new ManualClock();
});
afterEach(async () => {
  for (const stop of stops.splice(0)) stop.abort();
  await clock.advance(1);
  await server.close();
});

interface Candidate {
  stop: AbortController;
  /** What happened to it, in order. */
  events: string[];
  /** Set: it cannot reach the server. */
  cutOff: boolean;
  /** Set: the server does the writes it asks for, and the answer comes so much later. */
  answersLateMs: number;
  /** How far its own clock is from everybody's. */
  skewMs: number;
  /** What it would do as leader. */
  write(): Promise<unknown>;
}

function candidate(identity: string, skewMs = 0): Candidate {
  const stop = new AbortController();
  stops.push(stop);
  const real = server.transport();
  const transport: Transport = async (request) => {
    if (self.cutOff) throw new Error("unreachable");
    const response = await real(request);
    const isWrite = request.method !== "GET";
    if (isWrite && self.answersLateMs) await sleep(clock, self.answersLateMs, request.signal);
    request.signal.throwIfAborted();
    return response;
  };
  const lead = async (signal: AbortSignal, client: KubeClient) => {
    self.events.push("leads");
    self.write = () =>
      client.apply(resources.configMaps, { metadata: { namespace: "default", name: identity } });
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    self.events.push("stops");
  };
  const self: Candidate = {
    stop,
    events: [],
    cutOff: false,
    answersLateMs: 0,
    skewMs,
    write: () => Promise.reject(new Error("never led")),
  };
  const options = {
    client: new KubeClient(transport),
    namespace: "default",
    name: "lock",
    identity,
    random: () => 0,
    clock: {
      now: () => clock.now() + self.skewMs,
      elapsed: () => clock.elapsed(),
      after: clock.after.bind(clock),
    },
  };
  runAsLeader(options, lead, stop.signal)
    .then(() => self.events.push("done"))
    .catch((error: Error) => self.events.push(error.message));
  return self;
}

const lease = () =>
  new KubeClient(server.transport()).get(resources.leases, { namespace: "default", name: "lock" });

/** In small steps: between them the in-process server answers. */
async function pass(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 100) {
    await clock.advance(100);
    await clock.advance(0);
  }
}

describe("of several candidates", () => {
  test("one leads, and the next only after its lease has ended", async () => {
    const a = candidate("a");
    await pass(500);
    const b = candidate("b");
    await pass(20_000);
    expect([a.events, b.events]).toEqual([["leads"], []]);
    a.cutOff = true;
    // Between 8 and 10 seconds after its last renewal a steps down; b waits for all of 15.
    await pass(11_000);
    expect(a.events).toEqual([
      "leads",
      "stops",
      "leading: lease lock could not be renewed in time",
    ]);
    expect(b.events).toEqual([]);
    await pass(8_000);
    expect(b.events).toEqual(["leads"]);
    expect((await lease()).spec).toMatchObject({
      holderIdentity: "b",
      leaseDurationSeconds: 15,
      leaseTransitions: 1,
    });
  });

  test("the next leads soon when the first gives its lease back", async () => {
    const a = candidate("a");
    await pass(500);
    const b = candidate("b");
    await pass(3_000);
    a.stop.abort();
    await pass(4_000);
    expect(a.events).toEqual(["leads", "stops", "done"]);
    expect(b.events).toEqual(["leads"]);
  });

  test.each([3_600_000, -3_600_000])("none trusts another's clock, %d ms away", async (skew) => {
    const a = candidate("a");
    await pass(500);
    const b = candidate("b", skew);
    await pass(30_000);
    expect([a.events, b.events]).toEqual([["leads"], []]);
  });

  test("a clock that is set back an hour delays neither the end of a lease nor its successor", async () => {
    const a = candidate("a");
    await pass(500);
    const b = candidate("b");
    await pass(5_000);
    clock.set(-3_600_000);
    await pass(20_000);
    expect([a.events, b.events]).toEqual([["leads"], []]);
    a.cutOff = true;
    await pass(5_000);
    clock.set(-3_600_000);
    await pass(6_000);
    expect(a.events).toHaveLength(3);
    await pass(8_000);
    expect(b.events).toEqual(["leads"]);
  });

  test("exactly one leads when all begin at once", async () => {
    const all = ["a", "b", "c"].map((identity) => candidate(identity));
    await pass(10_000);
    expect(all.flatMap(({ events }) => events)).toEqual(["leads"]);
  });

  test("a leader that loses sight of the server for a moment stays", async () => {
    const a = candidate("a");
    await pass(3_000);
    a.cutOff = true;
    await pass(6_000);
    a.cutOff = false;
    await pass(20_000);
    expect(a.events).toEqual(["leads"]);
  });
});

describe("a leader that others may take for gone", () => {
  test("stops before they lead when answers to its renewals come late", async () => {
    const a = candidate("a");
    await pass(500);
    const b = candidate("b");
    await pass(5_000);
    a.answersLateMs = 7_500;
    await pass(2_100);
    a.cutOff = true;
    const order: string[] = [];
    while (order.length < 2) {
      await pass(100);
      if (a.events.includes("stops") && !order.includes("a stops")) order.push("a stops");
      if (b.events.includes("leads") && !order.includes("b leads")) order.push("b leads");
    }
    expect(order).toEqual(["a stops", "b leads"]);
  });

  test("writes nothing after its process stood still", async () => {
    const a = candidate("a");
    await pass(500);
    await expect(a.write()).resolves.toBeDefined();
    a.skewMs = 10_000;
    await expect(a.write()).rejects.toThrow(
      "refusing to write: lease lock could not be renewed in time",
    );
  });

  test("ends the writes that are under way when it loses the lease", async () => {
    const a = candidate("a");
    await pass(9_000);
    a.answersLateMs = 60_000;
    const outcome = expect(a.write()).rejects.toThrow("could not be renewed in time");
    await pass(12_000);
    await outcome;
  });
});

test("a leader that is asked to stop stays leader until its work has ended", async () => {
  const client = new KubeClient(server.transport());
  const options = { client, namespace: "default", name: "lock", identity: "a", clock };
  const stop = new AbortController();
  stops.push(stop);
  const work = Promise.withResolvers<void>();
  const running = runAsLeader(options, () => work.promise, stop.signal);
  await pass(500);
  stop.abort();
  const b = candidate("b");
  await pass(30_000);
  expect(b.events).toEqual([]);
  work.resolve();
  await pass(4_000);
  await running;
  expect(b.events).toEqual(["leads"]);
});

test("a leader whose work fails gives the lease back and says why", async () => {
  const client = new KubeClient(server.transport());
  const options = { client, namespace: "default", name: "lock", identity: "a", clock };
  const stop = new AbortController();
  stops.push(stop);
  const failing = runAsLeader(options, () => Promise.reject(new Error("broken")), stop.signal);
  const outcome = expect(failing).rejects.toThrow("broken");
  await pass(1_000);
  await outcome;
  expect((await lease()).spec?.holderIdentity).toBe("");
});

test("a leader that has lost its lease and does not stop is given up before another leads", async () => {
  const real = server.transport();
  let cutOff = false;
  const transport: Transport = (request) =>
    cutOff ? Promise.reject(new Error("unreachable")) : real(request);
  const client = new KubeClient(transport);
  const options = { client, namespace: "default", name: "lock", identity: "a", clock };
  const started = clock.now();
  let gaveUpAfterMs = 0;
  runAsLeader(options, () => new Promise(() => {}), new AbortController().signal).catch(() => {
    gaveUpAfterMs = clock.now() - started;
  });
  await pass(1_000);
  cutOff = true;
  await pass(18_000);
  expect(gaveUpAfterMs).toBeGreaterThan(10_000);
  expect(gaveUpAfterMs).toBeLessThanOrEqual(15_100);
});
