import {
  type Amounts,
  Controller,
  countedResource,
  deepEqual,
  isConflict,
  isNotFound,
  keyOf,
  type KubeObject,
  masked,
  parseQuantity,
  quotaEvaluatorOf,
  type ResourceQuota,
  resourceListOf,
  resources,
  scopesOf,
  sumOf,
} from "@spry/kube";
import { type ApiResource, discoverResources } from "./api-resources.ts";
import { byNamespace, type ControllerContext } from "./context.ts";

/** Counts again what no event reports: custom resources, and Pods whose time to end is over. */
const resyncMs = 5 * 60_000;
const pageSize = 500;

/**
 * Writes `status.hard` and `status.used` of ResourceQuotas (`pkg/controller/resourcequota`): admission counts
 * up with each creation, this counts down with each deletion, and what a new quota finds.
 */
export function createResourceQuotaController(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const controller = new Controller({
    name: "resourcequota",
    workers: 2,
    clock,
    log,
    reconcile: (key, signal) => reconcileQuota(context, key, signal),
  });
  const enqueueNamespace = (namespace = "") => {
    for (const quota of caches.resourceQuotas.byIndex(byNamespace, namespace)) {
      controller.enqueue(keyOf(quota));
    }
  };
  caches.resourceQuotas.onChange(({ object }) => controller.enqueue(keyOf(object)));
  for (const cache of [
    caches.services,
    caches.replicaSets,
    caches.deployments,
    caches.jobs,
    caches.cronJobs,
    caches.serviceAccounts,
  ]) {
    cache.onChange(({ type, object }) => {
      if (type === "deleted") enqueueNamespace(object.metadata.namespace);
    });
  }
  caches.pods.onChange((change) => {
    const ended =
      change.type === "updated" && hasEnded(change.object) && !hasEnded(change.previous);
    if (ended || change.type === "deleted") enqueueNamespace(change.object.metadata.namespace);
  });
  return controller;
}

function hasEnded(object: KubeObject): boolean {
  const { phase } = (object as { status?: { phase?: string } }).status ?? {};
  return phase === "Succeeded" || phase === "Failed";
}

async function reconcileQuota(
  context: ControllerContext,
  key: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | void> {
  const { caches, client } = context;
  const quota = caches.resourceQuotas.get(key);
  if (!quota || quota.metadata.deletionTimestamp) return;
  const hard = (quota.spec?.hard ?? {}) as Record<string, string>;
  const used = await countUsed(context, quota, Object.keys(hard), signal);
  const status = { ...quota.status, hard, used: resourceListOf(used) };
  if (!deepEqual(status, quota.status)) {
    try {
      await client.update(
        resources.resourceQuotas,
        { ...quota, status },
        { subresource: "status" },
      );
    } catch (error) {
      // Admission has counted in between: its write brings the quota here again.
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }
  return { requeueAfterMs: resyncMs };
}

async function countUsed(
  context: ControllerContext,
  quota: ResourceQuota,
  names: string[],
  signal: AbortSignal,
): Promise<Amounts> {
  const zero = parseQuantity("0");
  let used: Amounts = new Map(names.map((name) => [name, zero]));
  const scopes = scopesOf(quota.spec);
  const { namespace = "" } = quota.metadata;
  for (const { group, plural } of countedKinds(names)) {
    const evaluator = quotaEvaluatorOf(group, plural);
    const wanted = evaluator.matching(names);
    if (wanted.length === 0) continue;
    for (const object of await objectsOf(context, group, plural, namespace, signal)) {
      if (!scopes.every((scope) => evaluator.isInScope(scope, object))) continue;
      used = sumOf(used, masked(evaluator.usage(object, context.clock.now()), wanted));
    }
  }
  return used;
}

/** The kinds whose objects use what a quota names. */
function countedKinds(names: string[]): { group: string; plural: string }[] {
  const kinds = [
    { group: "", plural: "pods" },
    { group: "", plural: "services" },
    { group: "", plural: "persistentvolumeclaims" },
  ];
  for (const name of names) {
    const counted = countedResource(name);
    if (counted && !kinds.some((kind) => deepEqual(kind, counted))) kinds.push(counted);
  }
  return kinds;
}

async function objectsOf(
  { client }: ControllerContext,
  group: string,
  plural: string,
  namespace: string,
  signal: AbortSignal,
): Promise<KubeObject[]> {
  const resource = await findResource(client, group, plural, signal);
  if (!resource) return [];
  return (await client.list(resource, { namespace, limit: pageSize, signal })).items;
}

async function findResource(
  client: ControllerContext["client"],
  group: string,
  plural: string,
  signal: AbortSignal,
): Promise<ApiResource | undefined> {
  const all = await discoverResources(client, signal);
  return all.find((each) => each.group === group && each.plural === plural && each.namespaced);
}
