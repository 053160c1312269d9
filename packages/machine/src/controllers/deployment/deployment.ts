import {
  Controller,
  controllerOf,
  controllerRef,
  deepEqual,
  type Deployment,
  isAlreadyExists,
  isControlledBy,
  isNotFound,
  keyOf,
  type ReplicaSet,
  resources,
  selectorMatches,
} from "@spry/kube";
import { byController, byNamespace, type ControllerContext } from "../context.ts";
import { isPodTerminal } from "../pod-state.ts";
import { hashName } from "../pod-template.ts";
import { deploymentStatus, isComplete, msUntilDeadline } from "./deployment-status.ts";
import {
  annotationsOf,
  createdAt,
  currentSetOf,
  hashLabel,
  revisionAnnotation,
  revisionOf,
} from "./revisions.ts";
import { rollingLimits } from "./rolling-limits.ts";
import {
  isScalingEvent,
  newSetReplicas,
  proportionalScale,
  recreateStep,
  replicasOf,
  rollingStep,
  type Scale,
} from "./rollout.ts";

/** Replaces the Pods of one template by those of the next, without a gap. */
export function createDeploymentController(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const controller = new Controller({
    name: "deployment",
    workers: 4,
    clock,
    log,
    reconcile: (key) => reconcileDeployment(context, key),
  });
  caches.deployments.onChange(({ object }) => controller.enqueue(keyOf(object)));
  caches.replicaSets.onChange(({ object }) => {
    const owner = controllerOf(object);
    if (owner?.kind === "Deployment")
      controller.enqueue(`${object.metadata.namespace}/${owner.name}`);
  });
  // Recreate waits for the last old Pod.
  caches.pods.onChange(({ type, object }) => {
    if (type === "added") return;
    const set = `${object.metadata.namespace}/${controllerOf(object)?.name}`;
    const owner = controllerOf(caches.replicaSets.get(set) ?? { metadata: {} });
    const key = `${object.metadata.namespace}/${owner?.name}`;
    if (caches.deployments.get(key)?.spec?.strategy?.type === "Recreate") controller.enqueue(key);
  });
  return controller;
}

async function reconcileDeployment(
  context: ControllerContext,
  key: string,
): Promise<{ requeueAfterMs: number } | void> {
  const { caches, clock } = context;
  const deployment = caches.deployments.get(key);
  if (!deployment) return;
  const sets = await claimSets(context, deployment);
  if (deployment.metadata.deletionTimestamp)
    return writeStatus(context, deployment, sets, currentSetOf(deployment, sets));
  const rollout = await syncCurrentSet(context, deployment, sets);
  // A collision was counted: the change of the status brings the next pass.
  if (!rollout) return;
  const { current, event } = rollout;
  const old = sets.filter((set) => set.metadata.uid !== current?.metadata.uid);
  const all = current ? [...old, current] : old;
  await applyScale(context, deployment, nextScale(context, deployment, current, old));
  await writeStatus(context, deployment, all, current, event);
  await deleteOldSets(context, deployment, all, current);
  const ms = msUntilDeadline(deployment, deployment.status ?? {}, clock);
  if (ms) return { requeueAfterMs: ms + 1 };
}

/** Which sets to scale in this pass; a change of the replica count goes before a rollout's next step. */
function nextScale(
  context: ControllerContext,
  deployment: Deployment,
  current: ReplicaSet | undefined,
  old: ReplicaSet[],
): Scale {
  const all = current ? [current, ...old] : old;
  if (deployment.spec?.paused) return proportionalScale(deployment, current, old);
  if (isScalingEvent(deployment, all)) {
    const scale = proportionalScale(deployment, current, old);
    // Sets that keep their size still learn the new count, which ends the event.
    for (const set of all)
      if (replicasOf(set) > 0 && !scale.has(set)) scale.set(set, replicasOf(set));
    return scale;
  }
  if (!current) return new Map();
  if (deployment.spec?.strategy?.type !== "Recreate") return rollingStep(deployment, current, old);
  const oldPodsRunning = old.some((set) =>
    context.caches.pods
      .byIndex(byController, set.metadata.uid ?? "")
      .some((pod) => !isPodTerminal(pod)),
  );
  return recreateStep(deployment, current, old, oldPodsRunning);
}

async function claimSets(
  context: ControllerContext,
  deployment: Deployment,
): Promise<ReplicaSet[]> {
  const { caches, client } = context;
  const { namespace = "", uid = "" } = deployment.metadata;
  const owned = caches.replicaSets.byIndex(byController, uid);
  if (deployment.metadata.deletionTimestamp) return owned;
  for (const set of caches.replicaSets.byIndex(byNamespace, namespace)) {
    if (controllerOf(set) || set.metadata.deletionTimestamp) continue;
    if (!selectorMatches(deployment.spec?.selector, set.metadata.labels)) continue;
    const references = set.metadata.ownerReferences ?? [];
    const ownerReferences = [...references, controllerRef(resources.deployments, deployment)];
    const metadata = { uid: set.metadata.uid, ownerReferences };
    owned.push(await client.patch(resources.replicaSets, target(set), { metadata }));
  }
  return owned;
}

/** Finds or creates the set of the present template; undefined when the pass cannot go on. */
async function syncCurrentSet(
  context: ControllerContext,
  deployment: Deployment,
  sets: readonly ReplicaSet[],
): Promise<
  | { current: ReplicaSet | undefined; event?: "NewReplicaSetCreated" | "FoundNewReplicaSet" }
  | undefined
> {
  const { client, events } = context;
  let current = currentSetOf(deployment, sets);
  const others = sets.filter((set) => set !== current);
  const revision = Math.max(0, ...others.map(revisionOf)) + 1;
  const { maxSurge } = rollingLimits(deployment);
  const maxReplicas = (deployment.spec?.replicas ?? 1) + maxSurge;
  if (current) {
    const found = !deployment.status?.conditions?.some(({ type }) => type === "Progressing");
    const next = Math.max(revision, revisionOf(current));
    const annotations = annotationsOf(deployment, current, next, maxReplicas);
    // The desired count is written together with the scaling itself, see `applyScale`.
    const scaled = {
      ...annotations,
      ...pick(current.metadata.annotations, annotations),
    };
    if (!deepEqual(scaled, current.metadata.annotations ?? {}))
      current = await client.patch(resources.replicaSets, target(current), {
        metadata: { annotations: scaled },
      });
    await writeRevision(context, deployment, next);
    return { current, ...(found ? { event: "FoundNewReplicaSet" } : {}) };
  }
  if (deployment.spec?.paused) return { current };
  const set = desiredSet(deployment, sets, revision, maxReplicas);
  try {
    current = await client.create(resources.replicaSets, set);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return resolveCollision(context, deployment, set);
  }
  await writeRevision(context, deployment, revision);
  const count = replicasOf(current);
  const message = `Scaled up replica set ${set.metadata.name} from 0 to ${count}`;
  if (count > 0)
    events.record(resources.deployments, deployment, {
      type: "Normal",
      reason: "ScalingReplicaSet",
      message,
    });
  return { current, event: "NewReplicaSetCreated" };
}

const scaleAnnotations = [
  "deployment.kubernetes.io/desired-replicas",
  "deployment.kubernetes.io/max-replicas",
];

function pick(
  from: Record<string, string> | undefined,
  defaults: Record<string, string>,
): Record<string, string> {
  return Object.fromEntries(
    scaleAnnotations.map((name) => [name, from?.[name] ?? defaults[name] ?? ""]),
  );
}

function desiredSet(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  revision: number,
  maxReplicas: number,
): ReplicaSet {
  const { namespace, name } = deployment.metadata;
  const template = deployment.spec?.template;
  const hash = hashName([template, deployment.status?.collisionCount ?? 0]);
  const labels = { ...template?.metadata?.labels, [hashLabel]: hash };
  const selector = deployment.spec?.selector;
  const minReadySeconds = deployment.spec?.minReadySeconds;
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      ...(namespace ? { namespace } : {}),
      name: `${name}-${hash}`,
      labels,
      annotations: annotationsOf(deployment, undefined, revision, maxReplicas),
      ownerReferences: [controllerRef(resources.deployments, deployment)],
    },
    spec: {
      replicas: newSetReplicas(deployment, undefined, sets),
      ...(minReadySeconds ? { minReadySeconds } : {}),
      selector: { ...selector, matchLabels: { ...selector?.matchLabels, [hashLabel]: hash } },
      template: { ...template, metadata: { ...template?.metadata, labels } },
    },
  };
}

/** A set of the wanted name exists: ours, only not in the cache yet; or another's, so count on. */
async function resolveCollision(
  { client }: ControllerContext,
  deployment: Deployment,
  set: ReplicaSet,
): Promise<{ current: ReplicaSet } | undefined> {
  const live = await client.get(resources.replicaSets, target(set));
  if (isControlledBy(live, deployment) && currentSetOf(deployment, [live]))
    return { current: live };
  const collisionCount = (deployment.status?.collisionCount ?? 0) + 1;
  await client.patch(
    resources.deployments,
    target(deployment),
    { metadata: { uid: deployment.metadata.uid }, status: { collisionCount } },
    { subresource: "status" },
  );
  return undefined;
}

async function writeRevision(
  { client }: ControllerContext,
  deployment: Deployment,
  revision: number,
): Promise<void> {
  if (revisionOf(deployment) === revision) return;
  const annotations = { [revisionAnnotation]: String(revision) };
  await client.patch(resources.deployments, target(deployment), { metadata: { annotations } });
}

async function applyScale(
  { client, events }: ControllerContext,
  deployment: Deployment,
  scale: Scale,
): Promise<void> {
  const wanted = deployment.spec?.replicas ?? 1;
  const { maxSurge } = rollingLimits(deployment);
  for (const [set, replicas] of scale) {
    const before = replicasOf(set);
    const annotations = {
      "deployment.kubernetes.io/desired-replicas": String(wanted),
      "deployment.kubernetes.io/max-replicas": String(wanted + maxSurge),
    };
    if (replicas === before && hasAnnotations(set, annotations)) continue;
    const patch = {
      // From a cache that is behind, a step could be taken twice.
      metadata: { resourceVersion: set.metadata.resourceVersion, annotations },
      spec: { replicas },
    };
    await client.patch(resources.replicaSets, target(set), patch);
    if (replicas === before) continue;
    const direction = replicas > before ? "up" : "down";
    const message = `Scaled ${direction} replica set ${set.metadata.name} from ${before} to ${replicas}`;
    events.record(resources.deployments, deployment, {
      type: "Normal",
      reason: "ScalingReplicaSet",
      message,
    });
  }
}

function hasAnnotations(set: ReplicaSet, annotations: Record<string, string>): boolean {
  return Object.entries(annotations).every(
    ([name, value]) => set.metadata.annotations?.[name] === value,
  );
}

async function writeStatus(
  { client, clock }: ControllerContext,
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
  event?: "NewReplicaSetCreated" | "FoundNewReplicaSet",
): Promise<void> {
  const status = deploymentStatus(deployment, sets, current, clock, event);
  if (deepEqual(deployment.status ?? {}, status)) return;
  // A patch: the revision annotation may have been written a moment ago by this very pass.
  const gone = Object.keys(deployment.status ?? {}).filter((field) => !(field in status));
  const patch = { ...Object.fromEntries(gone.map((field) => [field, null])), ...status };
  await client
    .patch(
      resources.deployments,
      target(deployment),
      { metadata: { uid: deployment.metadata.uid }, status: patch },
      { subresource: "status" },
    )
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
}

/** Keeps `revisionHistoryLimit` sets to go back to, once the rollout is complete. */
async function deleteOldSets(
  { client }: ControllerContext,
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  current: ReplicaSet | undefined,
): Promise<void> {
  if (!isComplete(deployment, deployment.status ?? {})) return;
  const limit = deployment.spec?.revisionHistoryLimit ?? 10;
  const idle = sets.filter(
    (set) =>
      set !== current &&
      set.metadata.uid !== current?.metadata.uid &&
      replicasOf(set) === 0 &&
      (set.status?.replicas ?? 0) === 0 &&
      (set.status?.observedGeneration ?? 0) >= (set.metadata.generation ?? 0) &&
      !set.metadata.deletionTimestamp,
  );
  const byAge = idle.sort((a, b) => revisionOf(a) - revisionOf(b) || createdAt(a) - createdAt(b));
  for (const set of byAge.slice(0, Math.max(0, idle.length - limit))) {
    const preconditions = { uid: set.metadata.uid ?? "" };
    await client
      .delete(resources.replicaSets, target(set), { preconditions })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
  }
}

function target({ metadata }: Deployment | ReplicaSet) {
  return { namespace: metadata.namespace, name: metadata.name ?? "" };
}
