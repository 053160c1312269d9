/** The API server and the receiver are away for a minute: what was accepted is sent afterwards, once. */
import { functions } from "@spry/function";
import { resources } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { type Call } from "./calls/call.ts";
import { FunctionWorld, Pod } from "./testing/function-world.ts";

const minuteMs = 60_000;

/** A Function that is away, and the API server, too. */
async function away() {
  const bench = await FunctionWorld.create();
  const pod = await new Pod().start();
  await pod.stop();
  return { bench, pod };
}

const ids = (pod: Pod) => pod.seen.map(({ headers }) => String(headers["ce-id"]));

describe("while the API server and the receiver are away for a minute", () => {
  test("calls wait, say why, and are sent afterwards, once each", async () => {
    const { bench, pod } = await away();
    await bench.fn("fn", pod.port);
    const before = await Promise.all(Array.from({ length: 20 }, () => bench.submit("fn")));
    bench.world.wire.cut();
    // Accepted by what was last known of the namespace.
    const during = await Promise.all(Array.from({ length: 5 }, () => bench.submit("fn")));
    const all = [...before, ...during];
    await bench.pass(minuteMs);
    for (const location of all)
      expect(await bench.state(location)).toMatchObject({
        state: "waiting",
        attempts: 0,
        reason: "UpstreamUnreachable",
      });
    bench.world.wire.mend();
    await pod.start();
    const back = bench.clock.now();
    await bench.until(() => pod.seen.length === all.length);
    expect(bench.clock.now() - back).toBeLessThan(15_000);
    await bench.until(async () => (await bench.state(all.at(-1) ?? "")).state === "succeeded");
    for (const location of all)
      expect(await bench.state(location)).toMatchObject({ state: "succeeded", attempts: 1 });
    expect(new Set(pod.seen.map(({ headers }) => headers["x-call-id"])).size).toBe(all.length);
    expect(pod.seen).toHaveLength(all.length);
  });

  test("calls are made as soon as the Function is there, by what was last known of the namespace", async () => {
    const { bench, pod } = await away();
    await bench.fn("fn", pod.port);
    const location = await bench.submit("fn");
    bench.world.wire.cut();
    await bench.pass(10_000);
    await pod.start();
    await bench.until(async () => (await bench.state(location)).state === "succeeded");
    expect(pod.seen).toHaveLength(1);
  });

  test("calls do not wait for the response of the first that is sent", async () => {
    const { bench, pod } = await away();
    await bench.fn("fn", pod.port);
    const all = await Promise.all(Array.from({ length: 5 }, () => bench.submit("fn")));
    await bench.pass(10_000);
    const answer = pod.hold();
    await pod.start();
    await bench.until(() => pod.seen.length === all.length);
    answer();
    await bench.until(async () => (await bench.state(all[0] ?? "")).state === "succeeded");
  });

  test("a call without retries is one attempt, however often its process was started again", async () => {
    const { bench, pod } = await away();
    await bench.fn("fn", pod.port);
    const location = await bench.submit("fn", { "x-async-retries": "0" });
    for (let round = 0; round < 3; round++) {
      await bench.pass(3_000);
      await bench.restart();
    }
    pod.status = 500;
    await pod.start();
    await bench.until(async () => (await bench.state(location)).state === "failed");
    expect(await bench.state(location)).toMatchObject({ attempts: 1, response: { status: 500 } });
    expect(pod.seen).toHaveLength(1);
  });

  test("events, those that are redriven and those that are replayed, wait and come once", async () => {
    const { bench, pod } = await away();
    const { world } = bench;
    await world.subscribe("sink", pod.port, { delivery: { maxAttempts: 1 } });
    pod.status = 500;
    await pod.start();
    await world.publish("sink.v1", "redriven");
    await bench.until(async () => (await world.deadOf("sink")).length === 1);
    pod.status = 200;
    await world.publish("sink.v1", "replayed");
    await bench.until(() => pod.seen.length === 2);
    await pod.stop();
    world.wire.cut();
    const consumer = await world.eventing.queue()?.find("subscription/default/sink");
    expect(await consumer?.redrive("all")).toBe(1);
    const head = await world.eventing.queue()?.read({ after: 0, limit: 10 });
    const position = head?.find(({ attributes }) => attributes["id"] === "replayed")?.position ?? 0;
    await consumer?.replay({ position });
    for (const id of ["1", "2", "3"]) await world.publish("sink.v1", id);
    await bench.pass(minuteMs);
    expect(await world.deadOf("sink")).toEqual([]);
    expect((await consumer?.state())?.waiting).toBe(5);
    pod.seen.length = 0;
    world.wire.mend();
    await pod.start();
    await bench.until(async () => (await consumer?.state())?.waiting === 0);
    expect(ids(pod).toSorted()).toEqual(["1", "2", "3", "redriven", "replayed"]);
  });

  test("events keep their attempts through restarts of the process", async () => {
    const { bench, pod } = await away();
    await bench.world.subscribe("sink", pod.port, { delivery: { maxAttempts: 2 } });
    await bench.world.publish("sink.v1", "1");
    for (let round = 0; round < 3; round++) {
      await bench.pass(3_000);
      await bench.restart();
    }
    pod.status = 500;
    await pod.start();
    await bench.until(() => pod.seen.length === 1);
    pod.status = 200;
    await bench.until(() => pod.seen.length === 2);
    const consumer = await bench.world.eventing.queue()?.find("subscription/default/sink");
    await bench.until(async () => (await consumer?.state())?.waiting === 0);
    expect(await bench.world.deadOf("sink")).toEqual([]);
  });

  test("a schedule's runs wait, and are made afterwards", async () => {
    const { bench, pod } = await away();
    const start = Math.ceil(bench.clock.now() / minuteMs) * minuteMs;
    await bench.fn("fn", pod.port, { schedules: [{ name: "s", cron: "* * * * *" }] });
    await bench.pass(2_000);
    bench.world.wire.cut();
    await bench.pass(start + 5_000 - bench.clock.now());
    await bench.pass(minuteMs - 10_000);
    expect(pod.seen).toEqual([]);
    bench.world.wire.mend();
    await pod.start();
    await bench.until(() => pod.seen.length > 0);
    expect(pod.seen[0]?.headers["x-schedule-time"]).toBe(new Date(start).toISOString());
  });

  test.each(["a Service", "an address outside"])(
    "a result for %s waits, and comes once",
    async (kind) => {
      const { bench, pod: receiver } = await away();
      const pod = await new Pod().start();
      await bench.fn("fn", pod.port);
      await bench.fn("receiver", receiver.port);
      const url =
        kind === "a Service"
          ? "http://receiver.default.svc.cluster.local/"
          : `http://127.0.0.1:${receiver.port}/`;
      const location = await bench.submit("fn", { "x-callback-url": url });
      await bench.until(async () => (await bench.state(location)).state === "succeeded");
      bench.world.wire.cut();
      await bench.pass(minuteMs);
      bench.world.wire.mend();
      await receiver.start();
      await bench.until(() => receiver.seen.length === 1);
      await bench.pass(5_000);
      expect(receiver.seen.map(({ body }) => body)).toEqual(["done"]);
      await pod.stop();
      await receiver.stop();
    },
  );
});

describe("what never reaches anybody ends by time", () => {
  test("calls at their deadline, each of them, with their failure callback", async () => {
    const { bench, pod } = await away();
    const receiver = await new Pod().start();
    await bench.fn("fn", pod.port);
    await bench.fn("receiver", receiver.port);
    const headers = {
      "x-async-deadline": "30",
      "x-async-on-failure": "http://receiver.default.svc.cluster.local/",
    };
    const patient = await bench.submit("fn");
    const all = await Promise.all(Array.from({ length: 12 }, () => bench.submit("fn", headers)));
    await bench.pass(29_000);
    expect((await bench.state(all[0] ?? "")).state).toBe("waiting");
    await bench.until(() => receiver.seen.length === all.length);
    for (const location of all)
      expect(await bench.state(location)).toMatchObject({
        state: "failed",
        attempts: 0,
        reason: "NeverReached",
        error: expect.stringMatching(/^NeverReached: .* within 30 s; at last: UpstreamUnreachable/),
      });
    expect(receiver.seen[0]?.body).toContain("could not be sent within 30 s");
    expect((await bench.state(patient)).state).toBe("waiting");
    await receiver.stop();
  });

  test("calls without a deadline after a day", async () => {
    const { bench, pod } = await away();
    await bench.fn("fn", pod.port);
    const location = await bench.submit("fn");
    await bench.pass(1_000);
    bench.clock.set(86_390_000);
    await bench.pass(4_000);
    expect((await bench.state(location)).state).toBe("waiting");
    bench.clock.set(10_000);
    await bench.until(async () => (await bench.state(location)).state === "failed");
    expect(await bench.state(location)).toMatchObject({ reason: "NeverReached", attempts: 0 });
  });

  test("a schedule's run at its startingDeadlineSeconds", async () => {
    const { bench, pod } = await away();
    const schedules = [{ name: "s", cron: "* * * * *", startingDeadlineSeconds: 20 }];
    await bench.fn("fn", pod.port, { schedules });
    const queue = bench.world.eventing.queue();
    const runs = async () =>
      ((await queue?.list("calls/default", { limit: 10 })) ?? []).map(
        ({ value }) => JSON.parse(value) as Call,
      );
    await bench.until(async () => (await runs()).length > 0, 1_000);
    await bench.until(async () => (await runs())[0]?.state === "failed", 500);
    const [first] = await runs();
    expect(first).toMatchObject({ reason: "NeverReached", attempts: 0 });
    const late = Date.parse(first?.endedAt ?? "") - Date.parse(first?.schedule?.dueAt ?? "");
    expect(late).toBeGreaterThanOrEqual(20_000);
    expect(late).toBeLessThan(30_000);
  });

  test("a call to a Function that the API server says does not exist, at once", async () => {
    const { bench, pod } = await away();
    await bench.fn("fn", pod.port);
    const location = await bench.submit("fn");
    await bench.pass(5_000);
    bench.world.wire.cut();
    // It cannot be asked, and its watches have not said so either.
    const target = { namespace: "default", name: "fn" };
    for (const resource of [functions, resources.services, resources.endpointSlices])
      await bench.client.delete(resource, target);
    await bench.pass(20_000);
    expect((await bench.state(location)).state).toBe("waiting");
    bench.world.wire.mend();
    await bench.until(async () => (await bench.state(location)).state === "failed");
    expect(await bench.state(location)).toMatchObject({
      attempts: 0,
      reason: "FunctionNotFound",
      error: "FunctionNotFound: Function default/fn does not exist",
    });
  });

  test("a call says with the Function's own words why it waits", async () => {
    const { bench } = await away();
    const condition = {
      type: "Running",
      status: "False",
      reason: "MinReplicasNotAvailable",
      message: "container function: CrashLoopBackOff (exit code 1): at handler.js:1",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    await bench.fn("fn", 0, {}, { conditions: [condition] });
    const location = await bench.submit("fn");
    await bench.until(async () => (await bench.state(location)).reason === condition.reason);
    expect((await bench.state(location)).error).toContain("CrashLoopBackOff (exit code 1)");
  });
});
