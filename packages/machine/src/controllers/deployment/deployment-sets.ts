/** The ReplicaSets of a Deployment: whose they are, which one is current, and which are no longer needed. */
import {
  controllerRef,
  deepEqual,
  type Deployment,
  getCondition,
  isAlreadyExists,
  isControlledBy,
  isNamespaceTerminating,
  isNotFound,
  messageOf,
  type ReplicaSet,
  resources,
  selectorMatches,
} from "@spry/kube";
import { byController, type ControllerContext, orphansByNamespace } from "../context.ts";
import { hashName } from "../pod-template.ts";
import { type DeploymentCondition, hasDeadline, withCondition } from "./deployment-conditions.ts";
import {
  annotationsOf,
  createdAt,
  currentSetOf,
  hashLabel,
  revisionAnnotation,
  revisionOf,
  withoutScale,
} from "./revisions.ts";
import { newSetReplicas, replicasOf } from "./rollout.ts";
import { target } from "./scaling.ts";

/** The sets that are this Deployment's; orphans that fit are adopted, own ones that no longer fit released. */
export async function claimSets(
  context: ControllerContext,
  deployment: Deployment,
): Promise<ReplicaSet[]> {
  const { caches, client } = context;
  const { namespace = "", uid = "" } = deployment.metadata;
  const fits = (set: ReplicaSet) => selectorMatches(deployment.spec?.selector, set.metadata.labels);
  const mine = caches.replicaSets.byIndex(byController, uid);
  if (deployment.metadata.deletionTimestamp) return mine;
  const writeOwners = (set: ReplicaSet, ownerReferences: object[]) =>
    client.patch(resources.replicaSets, target(set), {
      metadata: { uid: set.metadata.uid, ownerReferences },
    });
  for (const set of mine) {
    if (fits(set) || set.metadata.deletionTimestamp) continue;
    const left = set.metadata.ownerReferences?.filter((owner) => owner.uid !== uid) ?? [];
    await writeOwners(set, left);
  }
  const claimed = mine.filter(fits);
  for (const set of caches.replicaSets.byIndex(orphansByNamespace, namespace)) {
    if (set.metadata.deletionTimestamp || !fits(set)) continue;
    // The cache may be behind: adopt only on behalf of a Deployment that is really still there.
    const live = await client.get(resources.deployments, target(deployment));
    if (live.metadata.uid !== uid || live.metadata.deletionTimestamp) return claimed;
    const references = set.metadata.ownerReferences ?? [];
    const owner = controllerRef(resources.deployments, deployment);
    claimed.push(await writeOwners(set, [...references, owner]));
  }
  return claimed;
}

interface Found {
  /** With what was written of it on the way. */
  deployment: Deployment;
  current: ReplicaSet | undefined;
}

/** The set of the present template, if there is one, brought up to date with what its Deployment hands down. */
export async function findCurrentSet(
  context: ControllerContext,
  deployment: Deployment,
  sets: readonly ReplicaSet[],
): Promise<Found> {
  const current = currentSetOf(deployment, sets);
  if (!current) return { deployment, current };
  const next = Math.max(nextRevision(sets, current), revisionOf(current));
  const annotations = withoutScale(annotationsOf(deployment, current, next));
  const minReadySeconds = deployment.spec?.minReadySeconds ?? 0;
  const isSame =
    deepEqual(annotations, withoutScale(current.metadata.annotations ?? {})) &&
    (current.spec?.minReadySeconds ?? 0) === minReadySeconds;
  const updated = isSame
    ? current
    : await context.client.patch(resources.replicaSets, target(current), {
        metadata: { annotations },
        spec: { minReadySeconds },
      });
  const isFirst = !getCondition(conditionsOf(deployment), "Progressing");
  const news = {
    reason: "FoundNewReplicaSet",
    message: `Found new replica set "${current.metadata.name}"`,
  };
  const told = await tell(context, deployment, next, isFirst ? news : undefined);
  return { deployment: told, current: updated };
}

/** The set of the present template, which is made if there is none; undefined when its name is taken. */
export async function currentSet(
  context: ControllerContext,
  deployment: Deployment,
  sets: readonly ReplicaSet[],
): Promise<(Found & { current: ReplicaSet }) | undefined> {
  const { client, events } = context;
  const found = await findCurrentSet(context, deployment, sets);
  if (found.current) return { ...found, current: found.current };
  const revision = nextRevision(sets, undefined);
  const set = desiredSet(deployment, sets, revision);
  const name = set.metadata.name ?? "";
  let current: ReplicaSet;
  try {
    current = await client.create(resources.replicaSets, set);
  } catch (error) {
    if (isAlreadyExists(error)) return resolveCollision(context, deployment, set, revision);
    if (isNamespaceTerminating(error)) throw error;
    const reason = "ReplicaSetCreateError";
    const message = `Failed to create new replica set "${name}": ${messageOf(error)}`;
    events.record(resources.deployments, deployment, { type: "Warning", reason, message });
    await tell(context, deployment, revisionOf(deployment), { status: "False", reason, message });
    throw error;
  }
  const count = replicasOf(current);
  const message = `Scaled up replica set ${name} from 0 to ${count}`;
  if (count > 0)
    events.record(resources.deployments, deployment, {
      type: "Normal",
      reason: "ScalingReplicaSet",
      message,
    });
  const news = { reason: "NewReplicaSetCreated", message: `Created new replica set "${name}"` };
  return { deployment: await tell(context, deployment, revision, news), current };
}

function nextRevision(sets: readonly ReplicaSet[], current: ReplicaSet | undefined): number {
  return Math.max(0, ...sets.filter((set) => set !== current).map(revisionOf)) + 1;
}

function conditionsOf({ status }: Deployment): DeploymentCondition[] {
  return (status?.conditions ?? []) as DeploymentCondition[];
}

/** Writes the revision, and changes of a rollout's state, at once: what follows in the pass may fail. */
async function tell(
  { client, clock }: ControllerContext,
  deployment: Deployment,
  revision: number,
  news?: { status?: "False"; reason: string; message: string },
): Promise<Deployment> {
  const condition = { type: "Progressing", status: "True", ...news } as const;
  const conditions =
    news && hasDeadline(deployment)
      ? withCondition(conditionsOf(deployment), condition, clock)
      : undefined;
  if (revisionOf(deployment) === revision && !conditions) return deployment;
  const annotations = { [revisionAnnotation]: String(revision) };
  // Written with the status, where the desired state does not change: the generation stays.
  return client.patch(
    resources.deployments,
    target(deployment),
    {
      metadata: { uid: deployment.metadata.uid, ...(revision > 0 ? { annotations } : {}) },
      ...(conditions ? { status: { conditions } } : {}),
    },
    { subresource: "status" },
  );
}

function desiredSet(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  revision: number,
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
      annotations: annotationsOf(deployment, undefined, revision),
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
  context: ControllerContext,
  deployment: Deployment,
  set: ReplicaSet,
  revision: number,
): Promise<(Found & { current: ReplicaSet }) | undefined> {
  const { client } = context;
  const live = await client.get(resources.replicaSets, target(set));
  if (isControlledBy(live, deployment) && currentSetOf(deployment, [live]))
    return { deployment: await tell(context, deployment, revision), current: live };
  const collisionCount = (deployment.status?.collisionCount ?? 0) + 1;
  await client.patch(
    resources.deployments,
    target(deployment),
    { metadata: { uid: deployment.metadata.uid }, status: { collisionCount } },
    { subresource: "status" },
  );
  return undefined;
}

/** Keeps `revisionHistoryLimit` old sets to go back to. */
export async function deleteOldSets(
  { client }: ControllerContext,
  deployment: Deployment,
  old: readonly ReplicaSet[],
): Promise<void> {
  const limit = deployment.spec?.revisionHistoryLimit ?? 10;
  const kept = old.filter((set) => !set.metadata.deletionTimestamp);
  kept.sort((a, b) => revisionOf(a) - revisionOf(b) || createdAt(a) - createdAt(b));
  for (const set of kept.slice(0, Math.max(0, kept.length - limit))) {
    const { observedGeneration = 0, replicas = 0 } = set.status ?? {};
    const isIdle = replicasOf(set) === 0 && replicas === 0;
    if (!isIdle || observedGeneration < (set.metadata.generation ?? 0)) continue;
    const preconditions = { uid: set.metadata.uid ?? "" };
    await client
      .delete(resources.replicaSets, target(set), { preconditions })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
  }
}
