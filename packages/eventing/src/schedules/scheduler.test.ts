import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { type FunctionSchedule, functionCrd, functions } from "@spry/function";
import { KubeClient, ManualClock, resources, silentLogger } from "@spry/kube";
import { openSqliteQueue } from "@spry/queue";
import { describe, expect, test } from "vitest";
import { type Call } from "../calls/call.ts";
import { NamespaceClaims } from "../calls/namespace-claims.ts";
import { CallRunner } from "../calls/runner.ts";
import { CallSubmitter } from "../calls/submit.ts";
import { nextRun } from "./next-run.ts";
import { Scheduler } from "./scheduler.ts";

const at = (text: string) => Date.parse(text);

describe("a schedule's next time", () => {
  test.each([
    ["*/5 * * * *", "UTC", "2026-01-01T00:01:00Z", "2026-01-01T00:05:00Z"],
    ["0 3 * * *", "Europe/Berlin", "2026-06-01T12:00:00Z", "2026-06-02T01:00:00Z"],
    ["0 3 * * *", "Europe/Berlin", "2026-01-01T12:00:00Z", "2026-01-02T02:00:00Z"],
    ["@daily", "America/New_York", "2026-01-01T12:00:00Z", "2026-01-02T05:00:00Z"],
  ])("%s in %s after %s is %s", (cron, zone, after, next) => {
    expect(nextRun(cron, zone, at(after))).toBe(at(next));
  });

  test("is never, or is refused", () => {
    expect(nextRun("0 0 31 2 *", "UTC", 0)).toBeUndefined();
    for (const cron of ["", "* * * *", "60 * * * *", "@sometimes", "* * * * * *"])
      expect(() => nextRun(cron, "UTC", 0)).toThrow();
    expect(() => nextRun("* * * * *", "Mars/Olympus", 0)).toThrow();
  });
});

/** A Function with one schedule, and what it is called with; time passes by `advance`. */
async function scheduled(schedule: Partial<FunctionSchedule>) {
  const api = await createApiServer({ dataDir: ":memory:" });
  const client = new KubeClient(api.transport());
  await client.apply(resources.customResourceDefinitions, functionCrd());
  await client.apply(functions, {
    metadata: { name: "fn", namespace: "default" },
    spec: {
      runtime: "nodejs24",
      source: { inline: { source: "x" } },
      schedules: [{ name: "s", cron: "*/10 * * * *", ...schedule }],
    },
  });
  const clock = new ManualClock(at("2026-01-01T00:01:00Z"));
  const directory = mkdtempSync(path.join(tmpdir(), "schedules-"));
  const queue = await openSqliteQueue({ directory, clock });
  let looks = 0;
  const get = queue.get.bind(queue);
  queue.get = (bucket, key) => {
    if (bucket === "schedules") looks++;
    return get(bucket, key);
  };
  const called: string[] = [];
  let respond = true;
  const start = () => {
    const stop = new AbortController();
    const claims = new NamespaceClaims(client, clock);
    const deps = { client, queue, clock, claims, log: silentLogger, signal: stop.signal };
    const submitter = new CallSubmitter(clock);
    const runner = new CallRunner({
      ...deps,
      allowPrivate: false,
      deliver: async ({ headers, body }) => {
        called.push(`${headers[headers.indexOf("x-schedule-time") + 1]} ${String(body)}`);
        if (!respond) await new Promise(() => {});
        return { status: 200, headers: {}, body: Buffer.alloc(0), isCut: false };
      },
    });
    const scheduler = new Scheduler({ ...deps, submitter, runner });
    void runner.run();
    void scheduler.run();
    return stop;
  };
  /** What reads and writes is real: it gets its turns. */
  const advance = async (minutes: number) => {
    for (let i = 0; i < minutes; i++) {
      await clock.advance(60_000);
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 1));
    }
  };
  let stop = start();
  await advance(0);
  const settle = () => new Promise((resolve) => setTimeout(resolve, 100));
  await settle();
  return {
    called,
    advance,
    calls: async () =>
      (await queue.list("calls/default", { limit: 10 })).map(
        ({ value }) => JSON.parse(value) as Call,
      ),
    hang: () => void (respond = false),
    set: (minutes: number) => clock.set(minutes * 60_000),
    /** How often what is kept of the schedule has been read. */
    looks: () => looks,
    change: (changed: Partial<FunctionSchedule>) =>
      client.patch(
        functions,
        { namespace: "default", name: "fn" },
        { spec: { schedules: [{ name: "s", cron: "*/10 * * * *", ...changed }] } },
      ),
    events: async () =>
      (await client.list(resources.events, { namespace: "default" })).items.map(
        ({ reason = "", message = "", count = 1 }) => `${count} ${reason}: ${message}`,
      ),
    async away(minutes: number) {
      stop.abort();
      await clock.advance(minutes * 60_000);
      stop = start();
      await settle();
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await queue.close();
      await api.close();
    },
  };
}

describe("a Function with a schedule", () => {
  test("is called when it is due, once for each time", async () => {
    await using fn = await scheduled({ payload: "p" });
    await fn.advance(25);
    expect(fn.called).toEqual(["2026-01-01T00:10:00.000Z p", "2026-01-01T00:20:00.000Z p"]);
    expect((await fn.calls()).map(({ state }) => state)).toEqual(["succeeded", "succeeded"]);
  });

  test("that was stopped starts the last run that it has missed, if that is not too late", async () => {
    await using fn = await scheduled({ startingDeadlineSeconds: 300 });
    await fn.away(31);
    await expect.poll(() => fn.called).toEqual(["2026-01-01T00:30:00.000Z "]);
    await fn.away(17);
    expect(fn.called).toHaveLength(1);
    await fn.advance(2);
    await expect.poll(() => fn.called.at(-1)).toBe("2026-01-01T00:50:00.000Z ");
  });

  test("is not called while the run before has not ended, where runs must not overlap", async () => {
    await using fn = await scheduled({ overlap: "Skip" });
    fn.hang();
    await fn.advance(25);
    expect(fn.called).toEqual(["2026-01-01T00:10:00.000Z "]);
  });

  test("goes on being called when the clock is set back an hour, and when it is set forward", async () => {
    await using fn = await scheduled({});
    await fn.advance(10);
    expect(fn.called).toEqual(["2026-01-01T00:10:00.000Z "]);
    fn.set(-60);
    await fn.advance(10);
    await expect.poll(() => fn.called.at(-1)).toBe("2025-12-31T23:20:00.000Z ");
    await fn.advance(60);
    await expect.poll(() => fn.called.at(-1)).toBe("2026-01-01T00:20:00.000Z ");
    expect(fn.called).toHaveLength(8);
    fn.set(9);
    await fn.advance(1);
    await expect.poll(() => fn.called.at(-1)).toBe("2026-01-01T00:30:00.000Z ");
    expect(fn.called).toHaveLength(9);
  });

  test("once a day is not called twice for a clock that is set back an hour", async () => {
    await using fn = await scheduled({ cron: "10 0 * * *" });
    await fn.advance(10);
    fn.set(-60);
    await fn.advance(90);
    expect(fn.called).toEqual(["2026-01-01T00:10:00.000Z "]);
  });

  test("whose last run was too late is looked at again when the next one is due, and not before", async () => {
    await using fn = await scheduled({ startingDeadlineSeconds: 60 });
    await fn.away(17);
    expect(fn.called).toEqual([]);
    const before = fn.looks();
    await fn.advance(1);
    expect(fn.looks() - before).toBeLessThan(5);
    await fn.advance(3);
    await expect.poll(() => fn.called).toEqual(["2026-01-01T00:20:00.000Z "]);
  });

  test("is not called while the schedule is suspended", async () => {
    await using fn = await scheduled({ suspend: true });
    await fn.advance(15);
    expect(fn.called).toEqual([]);
  });
});

test("a stored schedule by which nothing would run is an Event, is not tried again, and runs once it is right", async () => {
  await using fn = await scheduled({ cron: "every day" });
  await fn.advance(60);
  await expect
    .poll(() => fn.events())
    .toEqual([
      expect.stringMatching(/^1 InvalidSchedule: schedule s: "every day" is not a cron/) as string,
    ]);
  expect(fn.looks()).toBe(0);
  await fn.change({});
  await expect.poll(() => fn.looks()).toBeGreaterThan(0);
  await fn.advance(10);
  await expect.poll(() => fn.called.length).toBe(1);
});
