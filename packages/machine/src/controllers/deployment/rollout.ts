import { type Deployment, type ReplicaSet } from "@spry/kube";
import { createdAt, desiredAnnotation, maxAnnotation } from "./revisions.ts";
import { rollingLimits } from "./rolling-limits.ts";

/** How many replicas each set should have after this step. Sets that stay as they are are left out. */
export type Scale = Map<ReplicaSet, number>;

export const replicasOf = (set: ReplicaSet): number => set.spec?.replicas ?? 0;
const availableOf = (set: ReplicaSet): number => set.status?.availableReplicas ?? 0;
const sum = (sets: readonly ReplicaSet[], of: (set: ReplicaSet) => number): number =>
  sets.reduce((total, set) => total + of(set), 0);

/**
 * The next step of a rolling update (`pkg/controller/deployment/rolling.go`): grow the new set as far
 * as the surge allows; when it cannot grow, take from the old ones what may be missing, those that
 * are not available first.
 */
export function rollingStep(deployment: Deployment, current: ReplicaSet, old: ReplicaSet[]): Scale {
  const wanted = deployment.spec?.replicas ?? 1;
  const grown = newSetReplicas(deployment, current, old);
  if (grown !== replicasOf(current)) return new Map([[current, grown]]);
  const scale: Scale = new Map();
  if (sum(old, replicasOf) === 0) return scale;
  const { maxUnavailable } = rollingLimits(deployment);
  const minAvailable = wanted - maxUnavailable;
  const newUnavailable = replicasOf(current) - availableOf(current);
  const total = sum([current, ...old], replicasOf);
  let removable = total - minAvailable - newUnavailable;
  if (removable <= 0) return scale;
  const oldestFirst = [...old].sort((a, b) => createdAt(a) - createdAt(b));
  for (const set of oldestFirst) {
    const unhealthy = Math.max(0, replicasOf(set) - availableOf(set));
    const cut = Math.min(removable, unhealthy);
    if (cut > 0) scale.set(set, replicasOf(set) - cut);
    removable -= cut;
  }
  let spare = sum([current, ...old], availableOf) - minAvailable;
  for (const set of oldestFirst) {
    const left = scale.get(set) ?? replicasOf(set);
    const cut = Math.min(spare, left);
    if (cut > 0) scale.set(set, left - cut);
    spare -= Math.max(0, cut);
  }
  return scale;
}

/** How large the new set may be now. */
export function newSetReplicas(
  deployment: Deployment,
  current: ReplicaSet | undefined,
  old: readonly ReplicaSet[],
): number {
  const wanted = deployment.spec?.replicas ?? 1;
  const present = current ? replicasOf(current) : 0;
  if (deployment.spec?.strategy?.type === "Recreate" || present >= wanted) return wanted;
  const total = present + sum(old, replicasOf);
  const room = wanted + rollingLimits(deployment).maxSurge - total;
  return room <= 0 ? present : Math.min(wanted, present + room);
}

/** Recreate, once every old Pod is gone. */
export function recreateStep(deployment: Deployment, current: ReplicaSet): Scale {
  const wanted = deployment.spec?.replicas ?? 1;
  return new Map(replicasOf(current) === wanted ? [] : [[current, wanted]]);
}

/** Whether the number of replicas was changed since the sets were last scaled. */
export function isScalingEvent(deployment: Deployment, sets: readonly ReplicaSet[]): boolean {
  const wanted = String(deployment.spec?.replicas ?? 1);
  return sets.some((set) => {
    const known = set.metadata.annotations?.[desiredAnnotation];
    return replicasOf(set) > 0 && known !== undefined && known !== wanted;
  });
}

/**
 * A new number of replicas in the middle of a rollout is spread over the sets in proportion, so that
 * the rollout neither jumps ahead nor falls back (`sync.go: scale`).
 */
export function proportionalScale(
  deployment: Deployment,
  current: ReplicaSet | undefined,
  old: readonly ReplicaSet[],
): Scale {
  const wanted = deployment.spec?.replicas ?? 1;
  const all = current ? [current, ...old] : [...old];
  const active = all.filter((set) => replicasOf(set) > 0);
  const only = active.length <= 1 ? (active[0] ?? current) : undefined;
  if (only) return new Map(replicasOf(only) === wanted ? [] : [[only, wanted]]);
  if (current && replicasOf(current) === wanted && availableOf(current) === wanted)
    return new Map(old.filter((set) => replicasOf(set) > 0).map((set) => [set, 0]));
  if (deployment.spec?.strategy?.type === "Recreate") return new Map();
  const allowed = wanted > 0 ? wanted + rollingLimits(deployment).maxSurge : 0;
  const toAdd = allowed - sum(active, replicasOf);
  const scale: Scale = new Map();
  const largestFirst = active.sort(
    (a, b) => replicasOf(b) - replicasOf(a) || createdAt(b) - createdAt(a),
  );
  let added = 0;
  for (const set of largestFirst) {
    const share =
      Math.round((replicasOf(set) * allowed) / previousMax(set, deployment)) - replicasOf(set);
    const left = toAdd - added;
    const part =
      toAdd > 0 ? Math.max(0, Math.min(share, left)) : Math.min(0, Math.max(share, left));
    added += part;
    scale.set(set, replicasOf(set) + part);
  }
  const largest = largestFirst[0];
  // What rounding left over goes to the largest set.
  if (largest) scale.set(largest, Math.max(0, (scale.get(largest) ?? 0) + toAdd - added));
  return scale;
}

function previousMax(set: ReplicaSet, deployment: Deployment): number {
  return Number(set.metadata.annotations?.[maxAnnotation]) || deployment.status?.replicas || 1;
}
