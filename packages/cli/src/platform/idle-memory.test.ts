import { expect, test } from "vitest";
import { type Clock, ManualClock } from "@spry/kube";
import { collectWhenIdle } from "./idle-memory.ts";

/** Seconds of two, one after the other: processor time used, and how large the heap is then. */
const rows: [what: string, seconds: { cpuMs: number; megabytes: number }[], collections: number][] = [
  ["idle with a large heap", [{ cpuMs: 10, megabytes: 90 }], 1],
  ["busy", [{ cpuMs: 1500, megabytes: 90 }, { cpuMs: 900, megabytes: 150 }], 0],
  ["idle, with nothing worth it since the last time", [{ cpuMs: 5, megabytes: 90 }, { cpuMs: 5, megabytes: 65 }], 1],
  ["idle again after work", [{ cpuMs: 5, megabytes: 90 }, { cpuMs: 1900, megabytes: 140 }, { cpuMs: 5, megabytes: 140 }], 2],
]; // prettier-ignore

test.each(rows)("%s", async (_what, periods, collections) => {
  const ending = new AbortController();
  let cpuMs = 0;
  let megabytes = 50;
  let collected = 0;
  const waiting: (() => void)[] = [];
  const clock: Clock = {
    now: () => 0,
    elapsed: () => 0,
    after(_ms, callback) {
      waiting.push(callback);
      return () => {};
    },
  };
  const done = collectWhenIdle(ending.signal, clock, {
    cpuMs: () => cpuMs,
    bytes: () => megabytes * 1024 * 1024,
    collect() {
      collected++;
      megabytes = 60;
    },
  });
  for (const period of periods) {
    cpuMs += period.cpuMs;
    megabytes = period.megabytes;
    waiting.shift()?.();
    await new Promise(setImmediate);
  }
  ending.abort();
  waiting.shift()?.();
  await done;
  expect(collected).toBe(collections);
});

test("once more some minutes after the last work, and then no more", async () => {
  const ending = new AbortController();
  const clock = new ManualClock();
  const collections: number[] = [];
  let megabytes = 90;
  const done = collectWhenIdle(ending.signal, clock, {
    cpuMs: () => 0,
    bytes: () => megabytes * 1024 * 1024,
    collect() {
      megabytes = 60;
      collections.push(clock.now());
    },
  });
  await clock.advance(3_600_000);
  const [first = 0, second = 0, ...others] = collections;
  expect((second - first) / 60_000).toBeCloseTo(6, 0);
  expect(others).toEqual([]);
  ending.abort();
  await done;
});
