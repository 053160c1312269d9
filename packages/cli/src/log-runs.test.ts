import { type Pod } from "@spry/kube";
import { expect, test } from "vitest";
import { FollowedRuns } from "./log-runs.ts";

const terminated = { exitCode: 3, reason: "Error", startedAt: "", finishedAt: "" };
const pod = (restartCount: number, state: object, lastState: object = {}) =>
  ({
    metadata: { name: "a", uid: "1" },
    status: { containerStatuses: [{ restartCount, state, lastState }] },
  }) as unknown as Pod;

test("each run of a container begins once, and says how the one before it ended", () => {
  const runs = new FollowedRuns();
  expect(runs.begun(pod(0, { waiting: {} }))).toBeUndefined();
  expect(runs.begun(pod(0, { running: {} }))).toEqual({});
  expect(runs.begun(pod(0, { running: {} }))).toBeUndefined();
  expect(runs.begun(pod(0, { terminated }))).toBeUndefined();
  expect(runs.begun(pod(1, { running: {} }, { terminated }))).toEqual({
    after: "ended with code 3 and was started again",
  });
  const killed = { terminated: { ...terminated, exitCode: 137, reason: "OOMKilled" } };
  expect(runs.begun(pod(2, { waiting: {} }, killed))).toEqual({
    after: "ended with code 137 (OOMKilled) and was started again",
  });
});

test("a container that waits to be restarted has written what can be read", () => {
  expect(new FollowedRuns().begun(pod(4, { waiting: {} }, { terminated }))).toEqual({});
});
