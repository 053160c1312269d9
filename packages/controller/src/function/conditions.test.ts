import { type FunctionStatus } from "@spry/function";
import { ManualClock } from "@spry/kube";
import { expect, test } from "vitest";
import { newsOf, observe } from "./conditions.ts";

test("conditions: newest first, transition only when the status changes, news only when something new is said", async () => {
  const clock = new ManualClock(Date.UTC(2026, 0, 1));
  const status: FunctionStatus = {};
  observe(
    status,
    "ConfigurationReady",
    { reason: "ConfigMapCreated", message: "a", generation: 1 },
    clock,
  );
  observe(status, "BuildReady", { reason: "JobCreated", message: "b", generation: 1 }, clock);
  const before = structuredClone(status);
  await clock.advance(5000);

  observe(
    status,
    "ConfigurationReady",
    { reason: "ConfigMapCreated", message: "a", generation: 2 },
    clock,
  );
  expect(status.conditions?.map(({ type }) => type)).toEqual(["BuildReady", "ConfigurationReady"]);
  expect(newsOf(before, status)).toEqual([]);

  observe(status, "ConfigurationReady", { reason: "ConfigMapUpdated", message: "a" }, clock);
  expect(status.conditions?.[0]).toMatchObject({
    type: "ConfigurationReady",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  });

  observe(status, "BuildReady", { reason: "JobFinished", message: "c" }, clock);
  expect(status.conditions?.[0]).toMatchObject({
    type: "BuildReady",
    status: "True",
    lastTransitionTime: "2026-01-01T00:00:05Z",
  });
  expect(newsOf(before, status).map(({ reason }) => reason)).toEqual([
    "ConfigMapUpdated",
    "JobFinished",
  ]);
});
