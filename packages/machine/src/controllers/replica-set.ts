import {
  type Condition,
  Controller,
  controllerOf,
  controllerRef,
  deepEqual,
  isNamespaceTerminating,
  isNotFound,
  isControlledBy,
  keyOf,
  messageOf,
  type Pod,
  type ReplicaSet,
  requirementsOf,
  resources,
  selectorMatches,
  matchesLabels,
  setCondition,
  timestamp,
} from "@spry/kube";
import {
  byController,
  byNamespace,
  type ControllerContext,
  orphansByNamespace,
} from "./context.ts";
import { expiryMs, Expectations } from "./expectations.ts";
import { inGrowingBatches } from "./growing-batches.ts";
import { podFromTemplate } from "./pod-template.ts";
import { isPodActive, isPodTerminal, isPodTerminating, msUntilAvailable } from "./pod-state.ts";
import { podsToDelete } from "./scale-down.ts";
import { type Terminating } from "./terminating.ts";

type ReplicaSetStatus = NonNullable<ReplicaSet["status"]> & Terminating;

/** More than one machine runs; bounds what one mistyped number can start in one pass. */
const maxBurst = 500;

/** Keeps as many Pods of a template as the ReplicaSet says. */
export function createReplicaSetController(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const expectations = new Expectations(clock);
  const controller = new Controller({
    name: "replicaset",
    workers: 4,
    clock,
    log,
    reconcile: (key) => reconcileReplicaSet(context, expectations, key),
  });
  caches.replicaSets.onChange(({ type, object }) => {
    if (type === "deleted") expectations.forget(object.metadata.uid ?? "");
    controller.enqueue(keyOf(object));
  });
  caches.pods.onChange((change) => {
    const pods = change.type === "updated" ? [change.previous, change.object] : [change.object];
    for (const pod of pods) {
      const owner = controllerOf(pod);
      if (owner?.kind === "ReplicaSet")
        controller.enqueue(`${pod.metadata.namespace}/${owner.name}`);
      else if (!owner) for (const key of adoptersOf(context, pod)) controller.enqueue(key);
    }
  });
  return controller;
}

function adoptersOf({ caches }: ControllerContext, pod: Pod): string[] {
  return caches.replicaSets
    .byIndex(byNamespace, pod.metadata.namespace ?? "")
    .filter((set) => selectorMatches(set.spec?.selector, pod.metadata.labels))
    .map(keyOf);
}

async function reconcileReplicaSet(
  context: ControllerContext,
  expectations: Expectations,
  key: string,
): Promise<{ requeueAfterMs: number } | void> {
  const { caches, clock } = context;
  const set = caches.replicaSets.get(key);
  const uid = set?.metadata.uid;
  if (!set || !uid) return;
  // Before its Pods are read: what the cache shows meanwhile would answer for Pods that are not among them.
  if (!expectations.fulfilled(uid, caches.pods.byIndex(byController, uid)))
    return { requeueAfterMs: expiryMs };
  const owned = await claimPods(context, set);
  const deleted = new Set<Pod>();
  const failure = set.metadata.deletionTimestamp
    ? undefined
    : await manageReplicas(context, expectations, set, owned.filter(isPodActive), deleted);
  const minReady = set.spec?.minReadySeconds ?? 0;
  // What this pass has deleted no longer counts: a rollout waits for that, and another pass would come one write later.
  const left = owned.flatMap((pod) => (deleted.has(pod) ? asDeleted(pod, clock) : pod));
  await writeStatus(context, set, replicaSetStatus(set, left, minReady, clock, failure));
  if (failure) throw failure;
  const waits = owned.flatMap((pod) => msUntilAvailable(pod, minReady, clock.now()) || []);
  if (waits.length > 0) return { requeueAfterMs: Math.min(...waits) + 1 };
}

/** The Pods that are this set's; orphans that fit are adopted, own ones that no longer fit released. */
async function claimPods(context: ControllerContext, set: ReplicaSet): Promise<Pod[]> {
  const { caches, client } = context;
  const uid = set.metadata.uid ?? "";
  const fits = requirementsOf(set.spec?.selector ?? {});
  const mine = caches.pods.byIndex(byController, uid);
  const claimed = mine.filter((pod) => matchesLabels(fits, pod.metadata.labels));
  for (const pod of mine) {
    if (claimed.includes(pod) || pod.metadata.deletionTimestamp) continue;
    const ownerReferences = pod.metadata.ownerReferences?.filter((owner) => owner.uid !== uid);
    await patchOwners(context, pod, ownerReferences ?? []);
  }
  if (set.metadata.deletionTimestamp || fits.length === 0) return claimed;
  for (const pod of caches.pods.byIndex(orphansByNamespace, set.metadata.namespace ?? "")) {
    if (!isPodActive(pod) || !matchesLabels(fits, pod.metadata.labels)) continue;
    // The cache may be behind: adopt only on behalf of a set that is really still there.
    const live = await client.get(resources.replicaSets, target(set));
    if (live.metadata.uid !== uid || live.metadata.deletionTimestamp) return claimed;
    const owners = [
      ...(pod.metadata.ownerReferences ?? []),
      controllerRef(resources.replicaSets, set),
    ];
    const adopted = await patchOwners(context, pod, owners);
    if (adopted && isControlledBy(adopted, set)) claimed.push(adopted);
  }
  return claimed;
}

async function patchOwners(
  { client }: ControllerContext,
  pod: Pod,
  ownerReferences: object[],
): Promise<Pod | undefined> {
  try {
    const metadata = { uid: pod.metadata.uid, ownerReferences };
    return await client.patch(resources.pods, target(pod), { metadata });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** As the cache will show it: one that is on no node has nothing to end. */
function asDeleted(pod: Pod, clock: ControllerContext["clock"]): Pod[] {
  if (!pod.spec?.nodeName) return [];
  const deletionTimestamp = pod.metadata.deletionTimestamp ?? timestamp(clock);
  return [{ ...pod, metadata: { ...pod.metadata, deletionTimestamp } }];
}

/** Creates or deletes what is missing or too many, which it adds to `deleted`; returns the first error. */
async function manageReplicas(
  context: ControllerContext,
  expectations: Expectations,
  set: ReplicaSet,
  active: Pod[],
  deleted: Set<Pod>,
): Promise<Error | undefined> {
  const { client, clock, events } = context;
  const owner = set.metadata.uid ?? "";
  const difference = (set.spec?.replicas ?? 1) - active.length;
  const create = async () => {
    const pod = podFromTemplate(set.spec?.template, resources.replicaSets, set);
    const created = await client.create(resources.pods, pod);
    expectations.expect(owner, created.metadata.uid ?? "", "seen");
    const message = `Created pod: ${created.metadata.name}`;
    events.record(resources.replicaSets, set, {
      type: "Normal",
      reason: "SuccessfulCreate",
      message,
    });
  };
  const remove = async (pod: Pod) => {
    const preconditions = { uid: pod.metadata.uid ?? "" };
    await client.delete(resources.pods, target(pod), { preconditions }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    expectations.expect(owner, pod.metadata.uid ?? "", "gone");
    deleted.add(pod);
    const message = `Deleted pod: ${pod.metadata.name}`;
    events.record(resources.replicaSets, set, {
      type: "Normal",
      reason: "SuccessfulDelete",
      message,
    });
  };
  const { failure } =
    difference >= 0
      ? await inGrowingBatches(Array.from({ length: Math.min(difference, maxBurst) }), create)
      : await all(podsToDelete(active, Math.min(-difference, maxBurst), clock.now()).map(remove));
  if (!failure || isNamespaceTerminating(failure)) return undefined;
  const reason = difference > 0 ? "FailedCreate" : "FailedDelete";
  const message = `Error ${difference > 0 ? "creating" : "deleting"}: ${messageOf(failure)}`;
  events.record(resources.replicaSets, set, { type: "Warning", reason, message });
  return failure;
}

async function all(work: Promise<void>[]): Promise<{ failure?: Error }> {
  const results = await Promise.allSettled(work);
  const failed = results.find((result) => result.status === "rejected");
  return failed ? { failure: failed.reason as Error } : {};
}

/** The status that follows from the Pods (`pkg/controller/replicaset: calculateStatus`). */
export function replicaSetStatus(
  set: ReplicaSet,
  owned: readonly Pod[],
  minReadySeconds: number,
  clock: ControllerContext["clock"],
  failure?: Error,
): ReplicaSetStatus {
  const active = owned.filter(isPodActive);
  const waits = active.map((pod) => msUntilAvailable(pod, minReadySeconds, clock.now()));
  const labels = Object.entries(set.spec?.template?.metadata?.labels ?? {});
  const fullyLabeled = active.filter((pod) =>
    labels.every(([name, value]) => pod.metadata.labels?.[name] === value),
  ).length;
  const ready = waits.filter((ms) => ms !== undefined).length;
  const available = waits.filter((ms) => ms === 0).length;
  let conditions = (set.status?.conditions ?? []) as Condition[];
  if (!failure) conditions = conditions.filter(({ type }) => type !== "ReplicaFailure");
  // The first failure stays, as in Kubernetes: messages name a Pod of each attempt, and a status that changed with each
  // would be a reason for the next attempt at once.
  else if (!conditions.some(({ type }) => type === "ReplicaFailure")) {
    const reason = active.length < (set.spec?.replicas ?? 1) ? "FailedCreate" : "FailedDelete";
    const message = messageOf(failure);
    conditions = setCondition(
      conditions,
      { type: "ReplicaFailure", status: "True", reason, message },
      clock,
    );
  }
  const terminating = owned.filter((pod) => isPodTerminating(pod) && !isPodTerminal(pod)).length;
  return {
    replicas: active.length,
    ...(fullyLabeled ? { fullyLabeledReplicas: fullyLabeled } : {}),
    ...(ready ? { readyReplicas: ready } : {}),
    ...(available ? { availableReplicas: available } : {}),
    terminatingReplicas: terminating,
    observedGeneration: set.metadata.generation ?? 0,
    ...(conditions.length > 0 ? { conditions: conditions } : {}),
  };
}

async function writeStatus(
  { client }: ControllerContext,
  set: ReplicaSet,
  status: ReplicaSetStatus,
): Promise<void> {
  if (deepEqual(set.status, status)) return;
  await client
    .update(resources.replicaSets, { ...set, status }, { subresource: "status" })
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
}

function target({ metadata }: Pod | ReplicaSet) {
  return { namespace: metadata.namespace, name: metadata.name ?? "" };
}
