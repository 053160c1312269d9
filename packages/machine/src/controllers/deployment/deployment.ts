import { Controller, controllerOf, type Deployment, keyOf, type ReplicaSet } from "@spry/kube";
import { byController, type ControllerContext } from "../context.ts";
import { isPodTerminal } from "../pod-state.ts";
import { claimSets, currentSet, deleteOldSets, findCurrentSet } from "./deployment-sets.ts";
import { isComplete, msUntilDeadline, resizedStatus, rolloutStatus } from "./deployment-status.ts";
import {
  isScalingEvent,
  proportionalScale,
  replicasOf,
  recreateStep,
  rollingStep,
  type Scale,
} from "./rollout.ts";
import { applyScale } from "./scaling.ts";
import { writePause, writeStatus } from "./status-writer.ts";

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
  caches.replicaSets.onChange((change) => {
    const sets = change.type === "updated" ? [change.previous, change.object] : [change.object];
    for (const set of sets) {
      const owner = controllerOf(set);
      if (owner?.kind === "Deployment")
        controller.enqueue(`${set.metadata.namespace}/${owner.name}`);
    }
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
  const cached = caches.deployments.get(key);
  if (!cached) return;
  const sets = await claimSets(context, cached);
  if (cached.metadata.deletionTimestamp) {
    const { current } = await findCurrentSet(context, cached, sets);
    return writeStatus(context, cached, resizedStatus(cached, sets, current, clock));
  }
  const deployment = await writePause(context, cached);
  if (deployment.spec?.paused || isScalingEvent(deployment, sets))
    return resize(context, deployment, sets);
  await (deployment.spec?.strategy?.type === "Recreate"
    ? recreate(context, deployment, sets)
    : roll(context, deployment, sets));
  const ms = msUntilDeadline(deployment, clock);
  if (ms) return { requeueAfterMs: ms + 1 };
}

/** A change of the replica count goes before a rollout's next step; while paused, it is all that happens. */
async function resize(
  context: ControllerContext,
  deployment: Deployment,
  sets: readonly ReplicaSet[],
): Promise<void> {
  const { current, deployment: known } = await findCurrentSet(context, deployment, sets);
  const old = othersOf(sets, current);
  const scale = proportionalScale(known, current, old);
  // Sets that keep their size still learn the new count, which ends the event.
  for (const set of current ? [current, ...old] : old)
    if (replicasOf(set) > 0 && !scale.has(set)) scale.set(set, replicasOf(set));
  await applyScale(context, known, scale);
  if (known.spec?.paused) await deleteOldSets(context, known, old);
  const all = current ? [...old, current] : old;
  await writeStatus(context, known, resizedStatus(known, all, current, context.clock));
}

async function roll(
  context: ControllerContext,
  deployment: Deployment,
  sets: readonly ReplicaSet[],
): Promise<void> {
  const rollout = await currentSet(context, deployment, sets);
  // A collision was counted: the change of the status brings the next pass.
  if (!rollout) return;
  const old = othersOf(sets, rollout.current);
  await step(context, rollout, old, rollingStep(rollout.deployment, rollout.current, old));
}

/** The new set is not even made before the last old Pod is gone. */
async function recreate(
  context: ControllerContext,
  deployment: Deployment,
  sets: readonly ReplicaSet[],
): Promise<void> {
  const found = await findCurrentSet(context, deployment, sets);
  const others = othersOf(sets, found.current);
  const isRunning = (set: ReplicaSet) =>
    context.caches.pods
      .byIndex(byController, set.metadata.uid ?? "")
      .some((pod) => !isPodTerminal(pod));
  if (others.some((set) => replicasOf(set) > 0 || isRunning(set))) {
    const scale: Scale = new Map(
      others.filter((set) => replicasOf(set) > 0).map((set) => [set, 0]),
    );
    return step(context, found, others, scale);
  }
  const rollout = await currentSet(context, found.deployment, sets);
  if (!rollout) return;
  const old = othersOf(sets, rollout.current);
  await step(context, rollout, old, recreateStep(rollout.deployment, rollout.current));
}

async function step(
  context: ControllerContext,
  { deployment, current }: { deployment: Deployment; current: ReplicaSet | undefined },
  old: readonly ReplicaSet[],
  scale: Scale,
): Promise<void> {
  await applyScale(context, deployment, scale);
  const all = current ? [...old, current] : old;
  await writeStatus(context, deployment, rolloutStatus(deployment, all, current, context.clock));
  if (isComplete(deployment, deployment.status ?? {}))
    await deleteOldSets(context, deployment, old);
}

function othersOf(sets: readonly ReplicaSet[], current: ReplicaSet | undefined): ReplicaSet[] {
  return sets.filter((set) => set.metadata.uid !== current?.metadata.uid);
}
