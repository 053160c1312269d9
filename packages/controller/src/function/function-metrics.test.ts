/** What the controller tells of Functions, after their journeys. */
import { prometheusMetrics } from "@spry/kube";
import { functions } from "@spry/function";
import { afterEach, beforeEach, expect, test } from "vitest";
import { namespace, TestPlatform } from "../testing/platform.ts";

const metrics = prometheusMetrics();
const lines = (name: string) =>
  metrics
    .render()
    .split("\n")
    .filter((line) => line.startsWith(name));
const valueOf = (name: string) => Number(lines(name)[0]?.split(" ").at(-1));

let platform: TestPlatform;
beforeEach(async () => {
  platform = await TestPlatform.start({}, metrics);
});
afterEach(() => platform[Symbol.asyncDispose]());

test("a Function's times to its conditions, until it is gone, and how often it was looked at", async () => {
  await platform.running("hello");
  const labels = `name="hello",namespace="shop",type="inline",runtime="nodejs24"`;
  const states = ["configured", "built", "running"];
  const times = states.map((state) =>
    valueOf(`function_${state}_status_duration_millisecond{${labels}}`),
  );
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  for (const time of times) expect(time).toBeGreaterThanOrEqual(0);

  const kind = `runtime="nodejs24",source="inline"`;
  const reached = (state: string) =>
    valueOf(`serverless_function_state_reach_time_seconds_count{${kind},state="${state}"}`);
  expect(valueOf(`serverless_function_processed_total{${kind}}`)).toBe(1);
  expect(
    ["ConfigurationReady", "BuildReady", "Running"].map(reached),
    "one generation, once each",
  ).toEqual([1, 1, 1]);
  const passes = valueOf(`serverless_function_reconciliations_total{${kind}}`);
  expect(passes).toBeGreaterThanOrEqual(3);
  expect(valueOf(`serverless_function_reconciliation_time_seconds_count{${kind}}`)).toBe(passes);

  await platform.apply("hello", { source: { inline: { source: "other code" } } });
  await platform.finishBuild("hello", "2");
  await platform.rollOut("hello");
  await platform.until("the second generation", async () => reached("BuildReady") === 2);
  const again = states.map((state) =>
    valueOf(`function_${state}_status_duration_millisecond{${labels}}`),
  );
  expect(again, "gauges tell of the first generation").toEqual(times);

  await platform.client.delete(functions, { namespace, name: "hello" });
  await platform.until("no series", async () => lines("function_built_status").length === 0);
});
