import {
  type Condition,
  Controller,
  controllerOf,
  deepEqual,
  isConflict,
  isNotFound,
  keyOf,
  type LabelSelector,
  messageOf,
  type Pod,
  type PodDisruptionBudget,
  type Resource,
  resources,
  selectorMatches,
  setCondition,
  splitKey,
} from "@spry/kube";
import { discoverKind, findKind } from "./api-resources.ts";
import { byNamespace, type ControllerContext } from "./context.ts";
import { scaledValue } from "./deployment/int-or-percent.ts";
import { isPodReady } from "./pod-state.ts";

/** How long an eviction may take until its Pod is no longer taken for gone (`DeletionTimeout`). */
const deletionTimeoutMs = 120_000;

type Status = NonNullable<PodDisruptionBudget["status"]>;
type Counts = Pick<Status, "desiredHealthy" | "expectedPods">;

/** Says in each PodDisruptionBudget how many Pods may be evicted now (`pkg/controller/disruption`). */
export function createDisruptionController(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const controller = new Controller({
    name: "disruption",
    workers: 1,
    clock,
    log,
    reconcile: (key) => reconcileBudget(context, key),
  });
  const enqueueFor = ({ metadata }: Pod) => {
    for (const budget of caches.disruptionBudgets.byIndex(byNamespace, metadata.namespace ?? ""))
      if (selectorMatches(budget.spec?.selector, metadata.labels))
        controller.enqueue(keyOf(budget));
  };
  caches.disruptionBudgets.onChange(({ object }) => controller.enqueue(keyOf(object)));
  caches.pods.onChange((change) => {
    enqueueFor(change.object);
    // It may have been of another budget.
    if (change.type === "updated") enqueueFor(change.previous);
  });
  // A percentage is of what the Pods' owners want, which changes before the Pods do.
  const enqueueNamespace = (namespace = "") => {
    for (const budget of caches.disruptionBudgets.byIndex(byNamespace, namespace))
      controller.enqueue(keyOf(budget));
  };
  caches.deployments.onChange(({ object }) => enqueueNamespace(object.metadata.namespace));
  caches.replicaSets.onChange(({ object }) => enqueueNamespace(object.metadata.namespace));
  return controller;
}

async function reconcileBudget(
  context: ControllerContext,
  key: string,
): Promise<{ requeueAfterMs: number } | void> {
  const { caches, clock } = context;
  const budget = caches.disruptionBudgets.get(key);
  if (!budget) return;
  const { namespace = "" } = splitKey(key);
  const pods = caches.pods
    .byIndex(byNamespace, namespace)
    .filter(({ metadata }) => selectorMatches(budget.spec?.selector, metadata.labels));
  tellOfPods(context, budget, pods);
  try {
    const counts = await countsOf(context, budget, pods);
    const disrupted = stillDisrupted(context, budget, pods);
    const currentHealthy = pods.filter(
      (pod) =>
        !pod.metadata.deletionTimestamp &&
        disrupted[pod.metadata.name ?? ""] === undefined &&
        isPodReady(pod),
    ).length;
    const allowed = counts.expectedPods > 0 ? currentHealthy - counts.desiredHealthy : 0;
    await writeStatus(context, budget, {
      ...counts,
      currentHealthy,
      disruptionsAllowed: Math.max(0, allowed),
      ...(Object.keys(disrupted).length > 0 ? { disruptedPods: disrupted } : {}),
      observedGeneration: budget.metadata.generation ?? 0,
    });
    const ends = Object.values(disrupted).map((at) => Date.parse(at) + deletionTimeoutMs);
    if (ends.length > 0) return { requeueAfterMs: Math.min(...ends) - clock.now() + 1 };
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) throw error;
    // A budget that cannot be computed protects everything.
    const before = budget.status ?? { ...noCounts, currentHealthy: 0, disruptionsAllowed: 0 };
    const failed = { ...before, disruptionsAllowed: 0 };
    await writeStatus(context, budget, failed, messageOf(error));
    throw error;
  }
}

const noCounts: Counts = { desiredHealthy: 0, expectedPods: 0 };

function tellOfPods(
  { events }: ControllerContext,
  budget: PodDisruptionBudget,
  pods: readonly Pod[],
): void {
  const tell = (type: "Normal" | "Warning", reason: string, message: string) =>
    events.record(resources.podDisruptionBudgets, budget, { type, reason, message });
  if (pods.length === 0) tell("Normal", "NoPods", "No matching pods found");
  if (isAbsolute(budget) || pods.every((pod) => controllerOf(pod))) return;
  const message = `Pods selected by this PodDisruptionBudget (selector: ${printed(budget.spec?.selector)}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.`;
  tell("Warning", "UnmanagedPods", message);
}

/** As the real controller has it, in the form of Go. */
function printed(selector: LabelSelector = {}): string {
  const { matchLabels = {}, matchExpressions = [] } = selector;
  const labels = Object.entries(matchLabels).sort(([a], [b]) => (a < b ? -1 : 1));
  const pairs = labels.map(([name, value]) => `${name}: ${value},`).join("");
  const expressions = matchExpressions.map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(" ")}],}`,
  );
  const list = expressions.map((each) => `${each},`).join("");
  return `&LabelSelector{MatchLabels:map[string]string{${pairs}},MatchExpressions:[]LabelSelectorRequirement{${list}},}`;
}

/** Needs to know only the Pods, not how many their owners want. */
function isAbsolute({ spec }: PodDisruptionBudget): boolean {
  return spec?.maxUnavailable === undefined && typeof spec?.minAvailable === "number";
}

async function countsOf(
  context: ControllerContext,
  budget: PodDisruptionBudget,
  pods: readonly Pod[],
): Promise<Counts> {
  const { minAvailable, maxUnavailable } = budget.spec ?? {};
  if (isAbsolute(budget))
    return { desiredHealthy: Number(minAvailable), expectedPods: pods.length };
  if (minAvailable === undefined && maxUnavailable === undefined) return noCounts;
  const expectedPods = await expectedScale(context, pods);
  const desiredHealthy =
    maxUnavailable === undefined
      ? scaledValue(minAvailable, expectedPods, "up")
      : Math.max(0, expectedPods - scaledValue(maxUnavailable, expectedPods, "up"));
  return { desiredHealthy, expectedPods };
}

/** How many Pods those want together who manage these. */
async function expectedScale(context: ControllerContext, pods: readonly Pod[]): Promise<number> {
  const scales = new Map<string, number>();
  const seen = new Set<string>();
  for (const pod of pods) {
    const owner = controllerOf(pod);
    if (!owner || seen.has(owner.uid)) continue;
    seen.add(owner.uid);
    const found = await scaleOf(context, pod.metadata.namespace ?? "", owner);
    if (!found)
      throw new Error(`found no controllers for pod ${JSON.stringify(pod.metadata.name)}`);
    scales.set(found.uid, found.replicas);
  }
  return [...scales.values()].reduce((sum, replicas) => sum + replicas, 0);
}

async function scaleOf(
  { caches, client }: ControllerContext,
  namespace: string,
  { apiVersion, kind, name, uid }: { apiVersion: string; kind: string; name: string; uid: string },
): Promise<{ uid: string; replicas: number } | undefined> {
  if (kind === "ReplicaSet") {
    const set = caches.replicaSets.get(`${namespace}/${name}`);
    if (set?.metadata.uid !== uid) return undefined;
    const owner = controllerOf(set);
    const deployment =
      owner?.kind === "Deployment"
        ? caches.deployments.get(`${namespace}/${owner.name}`)
        : undefined;
    if (deployment?.metadata.uid === owner?.uid && deployment)
      return { uid: owner?.uid ?? "", replicas: deployment.spec?.replicas ?? 1 };
    return { uid, replicas: set.spec?.replicas ?? 1 };
  }
  const known = Object.values(resources) as Resource[];
  const resource =
    findKind(known, apiVersion, kind) ?? (await discoverKind(client, apiVersion, kind));
  if (!resource) return undefined;
  try {
    const target = { namespace, name, subresource: "scale" };
    const scale: Scale = await client.get(resource, target);
    if (scale.metadata.uid !== uid) return undefined;
    return { uid, replicas: scale.spec?.replicas ?? 0 };
  } catch (error) {
    if (!isNotFound(error)) throw error;
    // Either the owner is gone, or its kind cannot be scaled: a Job, say.
    const group = resource.group ? `${resource.plural}.${resource.group}` : resource.plural;
    throw new Error(`${group} does not implement the scale subresource`, { cause: error });
  }
}

interface Scale {
  metadata: PodDisruptionBudget["metadata"];
  spec?: { replicas?: number };
}

/** Pods whose eviction was allowed and that are not on their way out yet, with the time of that. */
function stillDisrupted(
  { clock, events }: ControllerContext,
  { metadata, status }: PodDisruptionBudget,
  pods: readonly Pod[],
): Record<string, string> {
  const disrupted: Record<string, string> = {};
  for (const pod of pods) {
    const { name = "", deletionTimestamp } = pod.metadata;
    const at = status?.disruptedPods?.[name];
    if (!at || deletionTimestamp) continue;
    if (Date.parse(at) + deletionTimeoutMs >= clock.now()) disrupted[name] = at;
    else {
      const message = `Pod was expected by PDB ${metadata.namespace}/${metadata.name} to be deleted but it wasn't`;
      events.record(resources.pods, pod, { type: "Warning", reason: "NotDeleted", message });
    }
  }
  return disrupted;
}

async function writeStatus(
  { client, clock }: ControllerContext,
  budget: PodDisruptionBudget,
  status: Status,
  failure?: string,
): Promise<void> {
  const isAllowed = status.disruptionsAllowed > 0;
  const condition: Condition = {
    type: "DisruptionAllowed",
    status: isAllowed ? "True" : "False",
    reason:
      failure !== undefined ? "SyncFailed" : isAllowed ? "SufficientPods" : "InsufficientPods",
    message: failure ?? "",
    observedGeneration: status.observedGeneration ?? 0,
  };
  const known = budget.status?.conditions as Condition[] | undefined;
  const conditions = setCondition(known, condition, clock) as unknown as Status["conditions"];
  const next = { ...status, conditions } as Status;
  if (deepEqual(budget.status, next)) return;
  await client.update(
    resources.podDisruptionBudgets,
    { ...budget, status: next },
    { subresource: "status" },
  );
}
