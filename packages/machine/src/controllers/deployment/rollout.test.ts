import { type Deployment, type ReplicaSet } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { rollingLimits } from "./rolling-limits.ts";
import {
  isScalingEvent,
  newSetReplicas,
  proportionalScale,
  replicasOf,
  rollingStep,
} from "./rollout.ts";

function deploymentOf(
  replicas: number,
  maxSurge: string | number,
  maxUnavailable: string | number,
): Deployment {
  return {
    metadata: { name: "web" },
    spec: {
      replicas,
      selector: {},
      template: {},
      strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge, maxUnavailable } },
    },
  };
}

function setOf(name: string, replicas: number, available = replicas): ReplicaSet {
  return {
    metadata: {
      name,
      uid: name,
      creationTimestamp: name === "new" ? "2026-01-02T00:00:00Z" : "2026-01-01T00:00:00Z",
    },
    spec: { replicas, selector: {} },
    status: { replicas, availableReplicas: available },
  };
}

describe("limits of a rolling update", () => {
  test.each([
    { replicas: 10, surge: "25%", unavailable: "25%", maxSurge: 3, maxUnavailable: 2 },
    { replicas: 1, surge: "25%", unavailable: "25%", maxSurge: 1, maxUnavailable: 0 },
    { replicas: 4, surge: 0, unavailable: 0, maxSurge: 0, maxUnavailable: 1 },
    { replicas: 3, surge: 0, unavailable: "10%", maxSurge: 0, maxUnavailable: 1 },
    { replicas: 2, surge: "100%", unavailable: 5, maxSurge: 2, maxUnavailable: 2 },
  ])("$replicas replicas, $surge, $unavailable: $maxSurge more, $maxUnavailable fewer", (row) => {
    const limits = rollingLimits(deploymentOf(row.replicas, row.surge, row.unavailable));
    expect(limits).toEqual({ maxSurge: row.maxSurge, maxUnavailable: row.maxUnavailable });
  });
});

test.each([
  { replicas: 1, surge: "25%", unavailable: "25%" },
  { replicas: 3, surge: 1, unavailable: 0 },
  { replicas: 10, surge: "25%", unavailable: "25%" },
  { replicas: 7, surge: 0, unavailable: 2 },
  { replicas: 5, surge: "100%", unavailable: "0%" },
])(
  "a rollout of $replicas ($surge, $unavailable) ends, and keeps its limits at each step",
  (row) => {
    const deployment = deploymentOf(row.replicas, row.surge, row.unavailable);
    const { maxSurge, maxUnavailable } = rollingLimits(deployment);
    let old = setOf("old", row.replicas);
    let current = setOf("new", newSetReplicas(deployment, undefined, [old]), 0);
    for (
      let step = 0;
      step < 100 && (replicasOf(old) > 0 || replicasOf(current) < row.replicas);
      step++
    ) {
      for (const [set, replicas] of rollingStep(deployment, current, [old])) {
        const available = Math.min(set.status?.availableReplicas ?? 0, replicas);
        if (set === current) current = setOf("new", replicas, available);
        else old = setOf("old", replicas, available);
      }
      const total = replicasOf(old) + replicasOf(current);
      const available =
        (old.status?.availableReplicas ?? 0) + (current.status?.availableReplicas ?? 0);
      expect(total).toBeLessThanOrEqual(row.replicas + maxSurge);
      expect(available).toBeGreaterThanOrEqual(row.replicas - maxUnavailable);
      // One more Pod of the new set becomes available between steps.
      const ready = Math.min(replicasOf(current), (current.status?.availableReplicas ?? 0) + 1);
      current = setOf("new", replicasOf(current), ready);
    }
    expect([replicasOf(old), replicasOf(current)]).toEqual([0, row.replicas]);
  },
);

test("old Pods that never became available go first, even when the new ones are not available yet", () => {
  const deployment = deploymentOf(3, 1, 0);
  const broken = setOf("broken", 1, 0);
  const scale = rollingStep(deployment, setOf("new", 1, 0), [broken, setOf("old", 2, 2)]);
  expect(scale.size).toBe(0);
  const later = rollingStep(deployment, setOf("new", 1, 1), [broken, setOf("old", 2, 2)]);
  expect([...later].map(([set, replicas]) => [set.metadata.name, replicas])).toEqual([
    ["broken", 0],
  ]);
});

test("a new count in the middle of a rollout is spread in proportion", () => {
  const deployment = deploymentOf(20, 0, 1);
  const annotate = (set: ReplicaSet): ReplicaSet => ({
    ...set,
    metadata: {
      ...set.metadata,
      annotations: {
        "deployment.kubernetes.io/desired-replicas": "10",
        "deployment.kubernetes.io/max-replicas": "10",
      },
    },
  });
  const current = annotate(setOf("new", 4));
  const old = annotate(setOf("old", 6));
  expect(isScalingEvent(deployment, [current, old])).toBe(true);
  const scale = proportionalScale(deployment, current, [old]);
  expect([scale.get(current), scale.get(old)]).toEqual([8, 12]);
});
