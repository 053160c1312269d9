import { ManualClock, type Pod } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { groupPods } from "./pod-groups.ts";
import {
  replicasFor,
  replicasForAverage,
  replicasForValue,
  tolerancesOf,
} from "./replica-calculation.ts";
import { nextReplicas, type ScalingHistory } from "./scaling-behavior.ts";

interface Use {
  /** Thousandths of a core of the hundred requested; none while there is no sample. */
  milli?: number;
  unready?: boolean;
}
const uses = (milli: number, count = 1): Use[] => Array.from({ length: count }, () => ({ milli }));

function groupsOf(pods: Use[]) {
  const named = pods.map((pod, index) => ({ ...pod, name: `p${index}` }));
  const names = (some: typeof named) => some.map(({ name }) => name);
  const measured = named.filter(({ milli, unready }) => milli !== undefined && !unready);
  const requests = new Map(named.map(({ name }) => [name, 100]));
  return {
    target: { utilization: 50, requests },
    groups: {
      measured: new Map(measured.map(({ name, milli = 0 }) => [name, milli])),
      unready: names(named.filter(({ unready }) => unready)),
      missing: names(named.filter(({ milli, unready }) => milli === undefined && !unready)),
    },
  };
}

describe("replicas for a CPU utilisation of 50%", () => {
  test.each([
    { name: "twice the target: twice the Pods", pods: uses(100, 2), current: 2, replicas: 4 },
    { name: "within a tenth of the target: none", pods: uses(54, 2), current: 2, replicas: 2 },
    { name: "half the target: half the Pods", pods: uses(25, 4), current: 4, replicas: 2 },
    { name: "a fraction is rounded up", pods: uses(70), current: 1, replicas: 2 },
    {
      name: "unready Pods damp growth",
      pods: [...uses(100), { milli: 100, unready: true }],
      current: 2,
      replicas: 2,
    },
    {
      name: "unready Pods do not hold what shrinks",
      pods: [...uses(10, 3), { unready: true }],
      current: 4,
      replicas: 1,
    },
    {
      name: "Pods without metrics count as at the target when shrinking",
      pods: [...uses(10), {}],
      current: 2,
      replicas: 2,
    },
    {
      name: "Pods without metrics count as idle when growing",
      pods: [...uses(200), {}],
      current: 2,
      replicas: 4,
    },
    { name: "no load at all: none", pods: uses(0), current: 1, replicas: 0 },
  ])("$name", ({ pods, current, replicas }) => {
    const { target, groups } = groupsOf(pods);
    expect(replicasFor(current, target, groups).replicas).toBe(replicas);
  });

  test("nothing is decided without a measured Pod", () => {
    const { target, groups } = groupsOf([{}, { milli: 100, unready: true }]);
    expect(() => replicasFor(2, target, groups)).toThrow("did not receive metrics");
  });
});

test.each([
  { pods: uses(300, 2), replicas: 6 },
  { pods: uses(105, 2), replicas: 2 },
  { pods: uses(50, 2), replicas: 1 },
  { pods: [...uses(50), {}], replicas: 2 },
])("for 100m each, $pods make $replicas Pods of 2", ({ pods, replicas }) => {
  const { groups } = groupsOf(pods);
  const found = replicasFor(2, { averageMilli: 100 }, groups);
  expect(found.replicas).toBe(replicas);
  expect(found.utilization).toBeUndefined();
});

test.each([
  { behavior: { scaleUp: { tolerance: "0" } }, milli: 52, replicas: 3 },
  { behavior: { scaleUp: { tolerance: "500m" } }, milli: 70, replicas: 2 },
  { behavior: { scaleUp: { tolerance: "500m" } }, milli: 20, replicas: 1 },
  { behavior: { scaleDown: { tolerance: "0.7" } }, milli: 20, replicas: 2 },
  { behavior: { scaleDown: { tolerance: "0.7" } }, milli: 70, replicas: 3 },
])("with the tolerance of $behavior, $milli thousandths make $replicas Pods of 2", (row) => {
  const { target, groups } = groupsOf(uses(row.milli, 2));
  const tolerances = tolerancesOf(row.behavior);
  expect(replicasFor(2, target, groups, tolerances).replicas).toBe(row.replicas);
});

test.each([
  { value: 10_000, current: 1, average: 5, whole: 5 },
  { value: 10_000, current: 5, average: 5, whole: 25 },
  { value: 2_100, current: 1, average: 1, whole: 1 },
  { value: 0, current: 3, average: 0, whole: 0 },
])("a value of $value for 2000 each, or in all, with $current Pods", (row) => {
  const { value, current } = row;
  const tolerances = tolerancesOf();
  expect({
    average: replicasForAverage(current, value, 2000, tolerances),
    whole: replicasForValue(current, value / 2000, () => current, tolerances),
  }).toEqual({ average: row.average, whole: row.whole });
});

describe("which samples count", () => {
  const now = Date.parse("2026-01-01T01:00:00Z");
  const ago = (seconds: number) => new Date(now - seconds * 1000).toISOString();
  const rows = [
    { name: "running and ready for long", started: 900, since: 890, group: "measured" },
    { name: "ready for longer than the window", started: 60, since: 20, group: "measured" },
    { name: "ready, but measured before", started: 60, since: 12, group: "unready" },
    { name: "not ready yet", started: 60, since: 60, ready: "False", group: "unready" },
    {
      name: "ready no more after an hour",
      started: 3600,
      since: 5,
      ready: "False",
      group: "measured",
    },
    {
      name: "never ready in an hour",
      started: 3600,
      since: 3590,
      ready: "False",
      group: "unready",
    },
    { name: "pending", phase: "Pending", group: "unready" },
    { name: "without a sample", bare: true, started: 900, since: 890, group: "missing" },
    { name: "on its way out", deleting: true, started: 900, since: 890, group: "none" },
    { name: "failed", phase: "Failed", started: 900, since: 890, group: "none" },
  ];
  test.each(rows)("$name: $group", (row) => {
    const { started = 0, since = 0, ready = "True", phase = "Running" } = row;
    const pod = {
      metadata: { name: "p", ...(row.deleting ? { deletionTimestamp: ago(1) } : {}) },
      status: {
        phase,
        startTime: ago(started),
        conditions: [{ type: "Ready", status: ready, lastTransitionTime: ago(since) }],
      },
    } as unknown as Pod;
    const sample = { value: 1, at: now - 5000, windowMs: 10_000 };
    const samples = new Map(row.bare ? [] : [["p", sample]]);
    const groups = groupPods([pod], samples, "cpu", new ManualClock(now));
    const found = Object.entries({ ...groups, measured: [...groups.measured.keys()] });
    expect(found.find(([, names]) => names.length > 0)?.[0] ?? "none").toBe(row.group);
  });
});

describe("from the desired count to the step", () => {
  const spec = {
    minReplicas: 1,
    maxReplicas: 20,
    scaleTargetRef: { kind: "Deployment", name: "web" },
  };
  const fresh = (): ScalingHistory => ({ recommendations: [], changes: [] });
  const second = 1000;

  test("without behavior growth is at most to the double or to four, whichever is more", () => {
    const history = fresh();
    expect(nextReplicas(spec, 1, 20, history, 0)).toMatchObject({
      replicas: 4,
      limit: { isLimited: true, reason: "ScaleUpLimit" },
    });
    expect(nextReplicas(spec, 4, 20, history, 5 * second).replicas).toBe(8);
  });

  test("with behavior growth is at most double or four more within 15 s, whichever is more", () => {
    const history = fresh();
    const paced = { ...spec, behavior: { scaleUp: {} } };
    expect(nextReplicas(paced, 1, 20, history, 0)).toMatchObject({
      replicas: 5,
      limit: { isLimited: true, reason: "ScaleUpLimit" },
    });
    history.changes.push({ at: 0, value: 4 });
    expect(nextReplicas(paced, 5, 20, history, 5 * second).replicas).toBe(5);
    expect(nextReplicas(paced, 5, 20, history, 16 * second).replicas).toBe(10);
  });

  test("the count shrinks only to the highest desired count of the last five minutes", () => {
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
    { desired: 50, current: 18, replicas: 20, reason: "TooManyReplicas" },
    { desired: 0, current: 1, replicas: 1, reason: "TooFewReplicas" },
  ])(
    "a desired count of $desired stays within the bounds: $replicas",
    ({ desired, current, replicas, reason }) => {
      const unhurried = { ...spec, behavior: { scaleDown: { stabilizationWindowSeconds: 0 } } };
      expect(nextReplicas(unhurried, current, desired, fresh(), 0)).toMatchObject({
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
