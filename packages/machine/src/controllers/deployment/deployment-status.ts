import {
  type Clock,
  type Condition,
  type Deployment,
  getCondition,
  type ReplicaSet,
  setCondition,
} from "@spry/kube";
import { rollingLimits } from "./rolling-limits.ts";

type Status = NonNullable<Deployment["status"]>;

/** Sets the API server's `progressDeadlineSeconds` has no value for: never. */
const noDeadline = 2 ** 31 - 1;

/** The counts, summed over the sets; conditions are added by `progress` below. */
export function countsOf(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
): Status {
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
    ...(collisions === undefined ? {} : { collisionCount: collisions }),
  };
}

/** Every wanted Pod is of the present template, and available; no other is left. */
export function isComplete(deployment: Deployment, status: Status): boolean {
  const wanted = deployment.spec?.replicas ?? 1;
  return (
    (status.updatedReplicas ?? 0) === wanted &&
    (status.replicas ?? 0) === wanted &&
    (status.availableReplicas ?? 0) === wanted &&
    (status.observedGeneration ?? 0) >= (deployment.metadata.generation ?? 0)
  );
}

function isProgressing(before: Status, now: Status): boolean {
  const old = (status: Status) => (status.replicas ?? 0) - (status.updatedReplicas ?? 0);
  return (
    (now.updatedReplicas ?? 0) > (before.updatedReplicas ?? 0) ||
    old(now) < old(before) ||
    (now.readyReplicas ?? 0) > (before.readyReplicas ?? 0) ||
    (now.availableReplicas ?? 0) > (before.availableReplicas ?? 0)
  );
}

/**
 * The status with its conditions Available, Progressing and ReplicaFailure, as
 * `pkg/controller/deployment/progress.go` says them. `event` is what this pass did itself.
 */
export function deploymentStatus(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
  clock: Clock,
  event?: "NewReplicaSetCreated" | "FoundNewReplicaSet",
): Status {
  const status = countsOf(deployment, sets, current);
  const before = deployment.status ?? {};
  let conditions = (before.conditions ?? []) as (Condition & { lastUpdateTime?: string })[];
  const put = (condition: Condition) => {
    const known = getCondition(conditions, condition.type);
    const same = known?.status === condition.status && known.reason === condition.reason;
    const now = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
    // The progress deadline counts from lastUpdateTime, so equal news must not renew it.
    const lastUpdateTime = same && known.lastUpdateTime ? known.lastUpdateTime : now;
    conditions = setCondition(conditions, { ...condition, lastUpdateTime }, clock);
  };
  put(availability(deployment, status));
  const name = current?.metadata.name ?? "";
  const progress = progressOf(deployment, before, status, name, clock, event);
  if (progress === "renew") {
    const known = getCondition(conditions, "Progressing");
    conditions = conditions.filter((each) => each !== known);
    put({
      type: "Progressing",
      status: "True",
      reason: "ReplicaSetUpdated",
      message: `ReplicaSet "${name}" is progressing.`,
      ...(known?.status === "True" && known.lastTransitionTime
        ? { lastTransitionTime: known.lastTransitionTime }
        : {}),
    });
  } else if (progress) put(progress);
  const failure = getCondition(
    (current?.status?.conditions ?? []) as Condition[],
    "ReplicaFailure",
  );
  conditions = conditions.filter(({ type }) => type !== "ReplicaFailure");
  if (failure) conditions = [...conditions, failure];
  return { ...status, conditions: conditions };
}

function availability(deployment: Deployment, status: Status): Condition {
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
  before: Status,
  status: Status,
  set: string,
  clock: Clock,
  event: string | undefined,
): Condition | "renew" | undefined {
  const type = "Progressing";
  const known = getCondition((before.conditions ?? []) as Condition[], type);
  const deadline = deployment.spec?.progressDeadlineSeconds ?? 600;
  if (deadline === noDeadline) return undefined;
  if (deployment.spec?.paused) {
    const message = "Deployment is paused";
    return { type, status: "Unknown", reason: "DeploymentPaused", message };
  }
  if (event === "NewReplicaSetCreated")
    return { type, status: "True", reason: event, message: `Created new replica set "${set}"` };
  const done =
    known?.reason === "NewReplicaSetAvailable" &&
    (status.replicas ?? 0) === (status.updatedReplicas ?? 0);
  const isOldNews =
    done && known.status === "True" && status.observedGeneration === before.observedGeneration;
  if (isComplete(deployment, status) && !isOldNews) {
    const message = `ReplicaSet "${set}" has successfully progressed.`;
    return { type, status: "True", reason: "NewReplicaSetAvailable", message };
  }
  if (event === "FoundNewReplicaSet" || known?.reason === "DeploymentPaused") {
    const resumed = known?.reason === "DeploymentPaused" && event !== "FoundNewReplicaSet";
    return resumed
      ? { type, status: "Unknown", reason: "DeploymentResumed", message: "Deployment is resumed" }
      : {
          type,
          status: "True",
          reason: "FoundNewReplicaSet",
          message: `Found new replica set "${set}"`,
        };
  }
  // After a rollout has ended, Pods that come and go are no progress of a rollout.
  if (done) return undefined;
  if (isProgressing(before, status)) return "renew";
  if (known && msUntilDeadline(deployment, before, clock) === 0) {
    const message = `ReplicaSet "${set}" has timed out progressing.`;
    return { type, status: "False", reason: "ProgressDeadlineExceeded", message };
  }
  return undefined;
}

/** When a rollout that makes no progress is given up; undefined when none is going on. */
export function msUntilDeadline(
  deployment: Deployment,
  status: Status,
  clock: Clock,
): number | undefined {
  const known = getCondition(
    (status.conditions ?? []) as (Condition & { lastUpdateTime?: string })[],
    "Progressing",
  );
  const seconds = deployment.spec?.progressDeadlineSeconds ?? 600;
  if (!known?.lastUpdateTime || seconds === noDeadline || deployment.spec?.paused) return undefined;
  if (known.reason === "NewReplicaSetAvailable") return undefined;
  if (known.reason === "ProgressDeadlineExceeded") return 0;
  return Math.max(0, Date.parse(known.lastUpdateTime) + seconds * 1000 - clock.now());
}
