/** Averages of windows from the totals of gateways. */
import { expect, test } from "vitest";
import { RevisionLoad } from "./revision-load.ts";

const line = (more: object) => ({
  gateway: "g1",
  revision: "shop/hello-00001",
  at: 0,
  active: 0,
  waiting: 0,
  requests: 0,
  load: 0,
  ...more,
});

test("the average is the load through the time", () => {
  const load = new RevisionLoad(60_000);
  load.begin(0);
  load.take("a", line({ at: 500, active: 5 }), 0);
  load.take("a", line({ at: 10_500, load: 50_000, requests: 20 }), 10_000);
  expect(load.average(10_000, 60_000)).toEqual({ concurrency: 5, rps: 2 });
  // Requests that arrive are reported within a second.
  expect(load.average(10_000, 5_000)).toEqual({ concurrency: 5, rps: 4 });
  // It leaves the window again.
  expect(load.average(20_000, 60_000)).toEqual({ concurrency: 2.5, rps: 1 });
  expect(load.average(15_000, 5_000)).toEqual({ concurrency: 0, rps: 0 });
  expect(load.average(70_001, 60_000).concurrency).toBe(0);
});

test("what is under way goes on until the next line", () => {
  const load = new RevisionLoad(60_000);
  load.begin(0);
  load.take("a", line({ active: 1, waiting: 2 }), 0);
  expect(load.current).toBe(3);
  expect(load.average(6_000, 6_000).concurrency).toBe(3);
  load.take("a", line({ at: 6_000, load: 18_000, requests: 3 }), 6_000);
  expect(load.current).toBe(0);
  expect(load.average(6_000, 6_000).concurrency).toBe(3);
});

test("gateways are summed, and one that is gone has nothing under way", () => {
  const load = new RevisionLoad(60_000);
  load.begin(0);
  load.take("a", line({ active: 1 }), 0);
  load.take("b", line({ gateway: "g2", active: 4 }), 0);
  expect(load.average(2_000, 6_000).concurrency).toBe(5);
  load.drop("b", 2_000);
  expect(load.current).toBe(1);
  // What it had is not forgotten.
  expect(load.average(2_000, 6_000).concurrency).toBe(5);
  expect(load.average(4_000, 6_000).concurrency).toBe(3);
});

test("the totals of a gateway that was started again begin at nothing", () => {
  const load = new RevisionLoad(60_000);
  load.begin(0);
  load.take("a", line({ load: 1e6, requests: 1e6 }), 0);
  load.take("a", line({ gateway: "g2", at: 5, requests: 10 }), 10_000);
  expect(load.average(10_000, 60_000)).toEqual({ concurrency: 0, rps: 1 });
});

test("lines that come twice, late or out of order are harmless", () => {
  const load = new RevisionLoad(60_000);
  load.begin(0);
  const first = line({ at: 1_000, load: 4_000, requests: 4 });
  load.take("a", line({}), 0);
  load.take("a", first, 1_000);
  load.take("a", first, 1_100);
  load.take("a", line({ at: 500, load: 2_000, requests: 2 }), 1_200);
  load.take("a", line({ at: 1_300, load: 100, requests: 1 }), 1_300);
  expect(load.average(2_000, 60_000)).toEqual({ concurrency: 2, rps: 2 });
});

test("what is new after a pause is of the last second", () => {
  const load = new RevisionLoad(60_000);
  load.begin(0);
  load.take("a", line({}), 0);
  load.take("a", line({ at: 50_000, active: 9, load: 30_000, requests: 60 }), 50_000);
  expect(load.average(50_000, 6_000)).toEqual({ concurrency: 5, rps: 10 });
});

test("a line that is late does not make more of what it says", () => {
  const load = new RevisionLoad(60_000);
  load.begin(0);
  load.take("a", line({ waiting: 1, requests: 1 }), 600);
  load.take("a", line({ at: 1_400, waiting: 200, requests: 200, load: 280_000 }), 1_400);
  expect(load.average(1_400, 6_000).concurrency).toBe(200);
});

test("lines that are late by different times do not make more of what they say", () => {
  const load = new RevisionLoad(60_000);
  const burst = { waiting: 200, requests: 200 };
  load.reset(50);
  load.take("a", line(burst), 50);
  load.take("a", line({ ...burst, at: 1_000, load: 200_000 }), 1_150);
  expect(load.average(1_150, 6_000).concurrency).toBeLessThanOrEqual(200);
  load.take("a", line({ ...burst, at: 2_000, load: 400_000 }), 1_650);
  expect(load.average(1_650, 6_000).concurrency).toBeLessThanOrEqual(200);
  expect(load.average(1_650, 6_000).concurrency).toBeGreaterThan(150);
});

test("a window of an hour, and a pause that is longer", () => {
  const load = new RevisionLoad(3_600_000);
  load.begin(0);
  load.take("a", line({ active: 1 }), 0);
  load.take("a", line({ at: 1e8, load: 1e8 }), 1e8);
  expect(load.average(1e8, 3_600_000).concurrency).toBeCloseTo(1);
});

test("what was under way counts once where a line is less late than the one before", () => {
  const load = new RevisionLoad(6_000);
  load.begin(0);
  load.take("a", line({ waiting: 200 }), 400);
  load.take("a", line({ at: 1_000, waiting: 200, load: 200_000 }), 1_400);
  load.take("a", line({ at: 2_000, waiting: 200, load: 400_000 }), 2_000);
  expect(load.average(2_000, 1_000).concurrency).toBe(200);
});
