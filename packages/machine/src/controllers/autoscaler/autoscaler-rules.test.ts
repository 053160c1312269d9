import { describe, expect, test } from "vitest";
import { type PodUsage, replicasForUtilization, tolerancesOf } from "./replica-calculation.ts";
import { nextReplicas, type ScalingHistory } from "./scaling-behavior.ts";

const pod = (usage: number | undefined, unready = false, request = 0.1): PodUsage => ({
  name: "p",
  request,
  usage,
  unready,
});

describe("replicas for a CPU utilisation of 50%", () => {
  test.each([
    {
      name: "twice the target: twice the Pods",
      pods: [pod(0.1), pod(0.1)],
      current: 2,
      replicas: 4,
    },
    {
      name: "within a tenth of the target: none",
      pods: [pod(0.054), pod(0.054)],
      current: 2,
      replicas: 2,
    },
    {
      name: "half the target: half the Pods",
      pods: Array.from({ length: 4 }, () => pod(0.025)),
      current: 4,
      replicas: 2,
    },
    { name: "a fraction is rounded up", pods: [pod(0.07)], current: 1, replicas: 2 },
    { name: "unready Pods damp growth", pods: [pod(0.1), pod(0.1, true)], current: 2, replicas: 2 },
    {
      name: "Pods without metrics count as at the target when shrinking",
      pods: [pod(0.01), pod(undefined)],
      current: 2,
      replicas: 2,
    },
    {
      name: "Pods without metrics count as idle when growing",
      pods: [pod(0.2), pod(undefined)],
      current: 2,
      replicas: 4,
    },
    { name: "no load at all: none", pods: [pod(0)], current: 1, replicas: 0 },
  ])("$name", ({ pods, current, replicas }) => {
    expect(replicasForUtilization(current, 50, pods)?.replicas).toBe(replicas);
  });

  test("nothing is decided without a measured Pod", () => {
    expect(replicasForUtilization(2, 50, [pod(undefined), pod(0.1, true)])).toBeUndefined();
  });
});

test.each([
  { behavior: { scaleUp: { tolerance: "0" } }, usage: 0.052, replicas: 3 },
  { behavior: { scaleUp: { tolerance: "500m" } }, usage: 0.07, replicas: 2 },
  { behavior: { scaleUp: { tolerance: "500m" } }, usage: 0.02, replicas: 1 },
  { behavior: { scaleDown: { tolerance: "0.7" } }, usage: 0.02, replicas: 2 },
  { behavior: { scaleDown: { tolerance: "0.7" } }, usage: 0.07, replicas: 3 },
])("with the tolerance of $behavior, $usage cores make $replicas Pods of 2", (row) => {
  const pods = [pod(row.usage), pod(row.usage)];
  const tolerances = tolerancesOf(row.behavior);
  expect(replicasForUtilization(2, 50, pods, tolerances)?.replicas).toBe(row.replicas);
});

describe("from wish to step", () => {
  const spec = {
    minReplicas: 1,
    maxReplicas: 20,
    scaleTargetRef: { kind: "Deployment", name: "web" },
  };
  const fresh = (): ScalingHistory => ({ recommendations: [], changes: [] });
  const second = 1000;

  test("growth is at most double or four more within 15 s, whichever is more", () => {
    const history = fresh();
    expect(nextReplicas(spec, 1, 20, history, 0)).toMatchObject({
      replicas: 5,
      limit: { reason: "ScaleUpLimit" },
    });
    history.changes.push({ at: 0, value: 4 });
    expect(nextReplicas(spec, 5, 20, history, 5 * second).replicas).toBe(5);
    expect(nextReplicas(spec, 5, 20, history, 16 * second).replicas).toBe(10);
  });

  test("the count shrinks only to the highest wish of the last five minutes", () => {
    const history = fresh();
    expect(nextReplicas(spec, 6, 6, history, 0).replicas).toBe(6);
    expect(nextReplicas(spec, 6, 2, history, 60 * second)).toMatchObject({
      replicas: 6,
      stabilized: { reason: "ScaleDownStabilized" },
    });
    expect(nextReplicas(spec, 6, 3, history, 299 * second).replicas).toBe(6);
    expect(nextReplicas(spec, 6, 2, history, 301 * second).replicas).toBe(3);
  });

  test.each([
    { wish: 50, current: 18, replicas: 20, reason: "TooManyReplicas" },
    { wish: 0, current: 1, replicas: 1, reason: "TooFewReplicas" },
  ])(
    "$wish wished for stays within the bounds: $replicas",
    ({ wish, current, replicas, reason }) => {
      const unhurried = { ...spec, behavior: { scaleDown: { stabilizationWindowSeconds: 0 } } };
      expect(nextReplicas(unhurried, current, wish, fresh(), 0)).toMatchObject({
        replicas,
        limit: { reason },
      });
    },
  );

  test("a disabled direction is not taken", () => {
    const disabled = { ...spec, behavior: { scaleUp: { selectPolicy: "Disabled" } } };
    expect(nextReplicas(disabled, 2, 4, fresh(), 0).replicas).toBe(2);
  });
});
