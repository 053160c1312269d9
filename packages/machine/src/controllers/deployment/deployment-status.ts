import {
  type Clock,
  type Condition,
  type Deployment,
  getCondition,
  type ReplicaSet,
} from "@spry/kube";
import { type Terminating } from "../terminating.ts";
import {
  deadlineSecondsOf,
  type DeploymentCondition,
  hasDeadline,
  withCondition,
} from "./deployment-conditions.ts";
import { rollingLimits } from "./rolling-limits.ts";

export type DeploymentStatus = NonNullable<Deployment["status"]> & Terminating;

/** The counts, summed over the sets. */
function countsOf(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
): DeploymentStatus {
  const sum = (of: (status: NonNullable<ReplicaSet["status"]>) => number | undefined) =>
    sets.reduce((total, set) => total + (of(set.status ?? { replicas: 0 }) ?? 0), 0);
  const replicas = sum((status) => status.replicas);
  const ready = sum((status) => status.readyReplicas);
  const available = sum((status) => status.availableReplicas);
  const wanted = sets.reduce((total, set) => total + (set.spec?.replicas ?? 0), 0);
  const updated = current?.status?.replicas ?? 0;
  const unavailable = Math.max(0, wanted - available);
  const collisions = deployment.status?.collisionCount;
  return {
    observedGeneration: deployment.metadata.generation ?? 0,
    ...(replicas ? { replicas } : {}),
    ...(updated ? { updatedReplicas: updated } : {}),
    ...(ready ? { readyReplicas: ready } : {}),
    ...(available ? { availableReplicas: available } : {}),
    ...(unavailable ? { unavailableReplicas: unavailable } : {}),
    terminatingReplicas: sum((status) => (status as Terminating).terminatingReplicas),
    ...(collisions === undefined ? {} : { collisionCount: collisions }),
  };
}

/** Every wanted Pod is of the present template, and available; no other is left. */
export function isComplete(deployment: Deployment, status: DeploymentStatus): boolean {
  const wanted = deployment.spec?.replicas ?? 1;
  return (
    (status.updatedReplicas ?? 0) === wanted &&
    (status.replicas ?? 0) === wanted &&
    (status.availableReplicas ?? 0) === wanted &&
    (status.observedGeneration ?? 0) >= (deployment.metadata.generation ?? 0)
  );
}

function isProgressing(before: DeploymentStatus, now: DeploymentStatus): boolean {
  const old = (status: DeploymentStatus) => (status.replicas ?? 0) - (status.updatedReplicas ?? 0);
  return (
    (now.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) ||
    old(now) < old(before) ||
    (now.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (now.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  );
}

/** The status of a Deployment that is only resized, or paused: counts and Available; of progress nothing is said. */
export function resizedStatus(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
  clock: Clock,
): DeploymentStatus {
  const status = countsOf(deployment, sets, current);
  const conditions = withCondition(
    conditionsOf(deployment),
    availability(deployment, status),
    clock,
  );
  return { ...status, conditions };
}

/**
 * The status with its conditions Available, Progressing and ReplicaFailure, as
 * `pkg/controller/deployment/progress.go` says them.
 */
export function rolloutStatus(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
  clock: Clock,
): DeploymentStatus {
  const status = countsOf(deployment, sets, current);
  let conditions = withCondition(conditionsOf(deployment), availability(deployment, status), clock);
  if (!hasDeadline(deployment))
    conditions = conditions.filter(({ type }) => type !== "Progressing");
  const progress = progressOf(deployment, status, current, clock);
  // The only condition that is written again when it still holds: its deadline starts over.
  if (progress)
    conditions = withCondition(
      conditions,
      progress,
      clock,
      progress.reason === "ReplicaSetUpdated",
    );
  const failures = [...(current ? [current] : []), ...sets].flatMap(
    (set) => getCondition((set.status?.conditions ?? []) as Condition[], "ReplicaFailure") ?? [],
  );
  const [failure] = failures;
  conditions = failure
    ? withCondition(conditions, failure, clock)
    : conditions.filter(({ type }) => type !== "ReplicaFailure");
  return { ...status, conditions };
}

function conditionsOf({ status }: Deployment): DeploymentCondition[] {
  return (status?.conditions ?? []) as DeploymentCondition[];
}

function availability(deployment: Deployment, status: DeploymentStatus): Condition {
  const wanted = deployment.spec?.replicas ?? 1;
  const enough =
    (status.availableReplicas ?? 0) >= wanted - rollingLimits(deployment).maxUnavailable;
  return {
    type: "Available",
    status: enough ? "True" : "False",
    reason: enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
    message: `Deployment ${enough ? "has" : "does not have"} minimum availability.`,
  };
}

function progressOf(
  deployment: Deployment,
  status: DeploymentStatus,
  current: ReplicaSet | undefined,
  clock: Clock,
): Condition | undefined {
  const type = "Progressing";
  const what = current
    ? `ReplicaSet "${current.metadata.name}"`
    : `Deployment "${deployment.metadata.name}"`;
  const reason = getCondition(conditionsOf(deployment), type)?.reason;
  // After a rollout has ended, Pods that come and go do not count as its progress.
  const isOver =
    reason === "NewReplicaSetAvailable" && (status.replicas ?? 0) === (status.updatedReplicas ?? 0);
  if (!hasDeadline(deployment) || isOver) return undefined;
  if (isComplete(deployment, status)) {
    const message = `${what} has successfully progressed.`;
    return { type, status: "True", reason: "NewReplicaSetAvailable", message };
  }
  if (isProgressing(deployment.status ?? {}, status))
    return {
      type,
      status: "True",
      reason: "ReplicaSetUpdated",
      message: `${what} is progressing.`,
    };
  if (msUntilDeadline(deployment, clock) === 0) {
    const message = `${what} has timed out progressing.`;
    return { type, status: "False", reason: "ProgressDeadlineExceeded", message };
  }
  return undefined;
}

/** When a rollout that makes no progress is given up; undefined when none is under way. */
export function msUntilDeadline(deployment: Deployment, clock: Clock): number | undefined {
  const known = getCondition(conditionsOf(deployment), "Progressing");
  if (!known?.lastUpdateTime || !hasDeadline(deployment) || deployment.spec?.paused)
    return undefined;
  if (known.reason === "NewReplicaSetAvailable") return undefined;
  if (known.reason === "ProgressDeadlineExceeded") return 0;
  const end = Date.parse(known.lastUpdateTime) + deadlineSecondsOf(deployment.spec) * 1000;
  return Math.max(0, end - clock.now());
}
