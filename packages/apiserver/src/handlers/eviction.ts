import {
  type Condition,
  deepEqual,
  getCondition,
  isConditionTrue,
  isConflict,
  type Pod,
  type PodDisruptionBudget,
  selectorMatches,
  setCondition,
  StatusError,
  timestamp,
  type UnknownObject,
} from "@spry/kube";
import { type Engine } from "../engine.ts";
import { type ResourceRequest } from "../request.ts";
import { badRequest, forbidden, notFound } from "../errors.ts";
import { checkPreconditions, deleteObject, type DeleteOptions } from "./delete.ts";
import { placeOf, updateObject } from "./write.ts";

const success = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };
/** Evictions that the disruption controller has not confirmed yet, per budget. */
const maxDisruptedPods = 2000;

interface Eviction extends UnknownObject {
  deleteOptions?: DeleteOptions;
}

/**
 * `pods/eviction`: a deletion that a PodDisruptionBudget may refuse, as
 * `pkg/registry/core/pod/storage/eviction.go`. Throws a `StatusError` 429 with the cause
 * `DisruptionBudget` while the budget is spent, 400 for a body that contradicts the URL.
 */
export async function evictPod(
  engine: Engine,
  request: ResourceRequest,
  eviction: Eviction,
): Promise<object> {
  checkEviction(request, eviction);
  const options = eviction.deleteOptions ?? {};
  const dryRun = request.dryRun || (options.dryRun?.length ?? 0) > 0;
  const asked = { ...request, dryRun };
  const stored = engine.store.get(placeOf(request));
  if (!stored) throw notFound(request.type, request.name);
  const pod = stored.object as unknown as Pod;
  if (disruptsNothing(pod)) {
    await evict(engine, asked, pod.status?.phase === "Pending" ? pinned(options, pod) : options);
    return success;
  }
  const [budget, another] = budgetsOf(engine, pod);
  if (another) throw severalBudgets();
  if (budget && sparesUnready(pod, budget)) {
    try {
      await evict(engine, asked, pinned(options, pod));
    } catch (error) {
      // It may have become ready meanwhile: the client is to ask again.
      if (!isConflict(error) || options.preconditions?.resourceVersion) throw error;
      throw stillProcessed(budget.metadata.name ?? "");
    }
    return success;
  }
  if (budget) await spend(engine, asked, budget, pod);
  await evict(engine, asked, options);
  return success;
}

function checkEviction({ name, dryRun }: ResourceRequest, eviction: Eviction): void {
  const { apiVersion, kind, metadata, deleteOptions } = eviction;
  const isKnown =
    (kind === undefined || kind === "Eviction") &&
    (apiVersion === undefined || /^policy\/v1(?:beta1)?$/.test(apiVersion));
  if (!isKnown)
    throw badRequest(`the body is a ${apiVersion} ${kind}, where a policy/v1 Eviction is due`);
  if (metadata?.name !== name)
    throw badRequest("name in URL does not match name in Eviction object");
  const inBody = deleteOptions?.dryRun ?? [];
  if (dryRun && inBody.length > 0 && !deepEqual(inBody, ["All"]))
    throw badRequest(
      `Non-matching dry-run options in request and content: [All] and [${inBody.join(" ")}]`,
    );
}

/** Has ended, has not begun, or is being deleted: its eviction costs no availability. */
function disruptsNothing({ status, metadata }: Pod): boolean {
  const phases = ["Succeeded", "Failed", "Pending"];
  return phases.includes(status?.phase ?? "") || metadata.deletionTimestamp !== undefined;
}

function budgetsOf({ catalog, store }: Engine, pod: Pod): PodDisruptionBudget[] {
  const type = catalog.find("policy", "v1", "poddisruptionbudgets");
  if (!type) return [];
  return store
    .list(type.collection, pod.metadata.namespace ?? "")
    .map(({ object }) => object as unknown as PodDisruptionBudget)
    .filter(({ spec }) => spec?.selector && selectorMatches(spec.selector, pod.metadata.labels));
}

/** Whether a Pod that is not ready may go without the budget being charged (`unhealthyPodEvictionPolicy`). */
function sparesUnready(pod: Pod, { spec, status }: PodDisruptionBudget): boolean {
  if (isConditionTrue(pod.status?.conditions as Condition[] | undefined, "Ready")) return false;
  if (spec?.unhealthyPodEvictionPolicy === "AlwaysAllow") return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = status ?? {};
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy;
}

/** Takes one disruption from the budget; tried again when another writer comes in between. */
async function spend(
  engine: Engine,
  request: ResourceRequest,
  { metadata }: PodDisruptionBudget,
  pod: Pod,
): Promise<void> {
  const type = engine.catalog.find("policy", "v1", "poddisruptionbudgets");
  if (!type) return;
  const name = metadata.name ?? "";
  const target = { ...request, type, name, subresource: "status", query: new URLSearchParams() };
  await updateObject(engine, target, {
    subresource: "status",
    tracked: true,
    modify(current) {
      const budget = current as unknown as PodDisruptionBudget;
      requireDisruption(request, budget);
      const status = { ...budget.status } as NonNullable<PodDisruptionBudget["status"]>;
      status.disruptionsAllowed--;
      const now = timestamp(engine.clock);
      status.disruptedPods = { ...status.disruptedPods, [pod.metadata.name ?? ""]: now };
      if (status.disruptionsAllowed === 0) {
        const spent: Condition = {
          type: "DisruptionAllowed",
          status: "False",
          reason: "InsufficientPods",
          message: "",
          observedGeneration: status.observedGeneration ?? 0,
        };
        const known = status.conditions as Condition[] | undefined;
        status.conditions = setCondition(known, spent, engine.clock) as never;
      }
      return { ...current, status };
    },
  });
}

/** Throws unless the budget, as last computed, allows one more disruption. */
function requireDisruption(request: ResourceRequest, budget: PodDisruptionBudget): void {
  const { metadata, status } = budget;
  const name = metadata.name ?? "";
  const { disruptionsAllowed = 0, currentHealthy = 0, desiredHealthy = 0 } = status ?? {};
  if ((status?.observedGeneration ?? 0) < (metadata.generation ?? 0)) throw stillProcessed(name);
  const resource = { group: "policy", plural: "poddisruptionbudget" };
  if (disruptionsAllowed < 0)
    throw forbidden(resource, name, "pdb disruptions allowed is negative");
  if (Object.keys(status?.disruptedPods ?? {}).length > maxDisruptedPods)
    throw forbidden(
      resource,
      name,
      "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
    );
  if (disruptionsAllowed > 0) return;
  const known = getCondition(status?.conditions as Condition[] | undefined, "DisruptionAllowed");
  const refusal = known?.status === "False" && known.message ? known : undefined;
  const so = `The disruption budget ${name} does not allow evicting pods currently`;
  if (refusal?.reason === "SyncFailed")
    throw tooManyDisruptions(`${so} because it failed sync: ${refusal.message}`);
  if (currentHealthy <= desiredHealthy)
    throw tooManyDisruptions(
      `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`,
    );
  throw tooManyDisruptions(refusal ? `${so} (${refusal.reason}): ${refusal.message}` : so);
}

/** Says on the Pod why it goes, then deletes it. */
async function evict(
  engine: Engine,
  request: ResourceRequest,
  options: DeleteOptions,
): Promise<void> {
  let resourceVersion = options.preconditions?.resourceVersion;
  if (!request.dryRun) {
    const marked = await updateObject(
      engine,
      { ...request, subresource: "status" },
      {
        subresource: "status",
        tracked: true,
        modify(current) {
          checkPreconditions(request, current, options);
          const pod = current as unknown as Pod;
          const reason = "EvictionByEvictionAPI";
          const message = "Eviction API: evicting";
          const target: Condition = { type: "DisruptionTarget", status: "True", reason, message };
          const known = pod.status?.conditions as Condition[] | undefined;
          const conditions = setCondition(known, target, engine.clock);
          return { ...current, status: { ...pod.status, conditions } };
        },
      },
    );
    resourceVersion &&= marked.metadata.resourceVersion ?? "";
  }
  const preconditions = { ...options.preconditions, ...(resourceVersion && { resourceVersion }) };
  await deleteObject(engine, request, { ...options, preconditions });
}

/** The deletion holds for the Pod as it was looked at, unless the client names a version itself. */
function pinned(options: DeleteOptions, { metadata }: Pod): DeleteOptions {
  const { resourceVersion = metadata.resourceVersion ?? "" } = options.preconditions ?? {};
  return { ...options, preconditions: { ...options.preconditions, resourceVersion } };
}

function severalBudgets(): StatusError {
  const message =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
  const error = new StatusError({ code: 500, message });
  delete error.status.reason;
  return error;
}

function stillProcessed(name: string): StatusError {
  return tooManyDisruptions(
    `The disruption budget ${name} is still being processed by the server.`,
    10,
  );
}

function tooManyDisruptions(message: string, retryAfterSeconds = 0): StatusError {
  return new StatusError({
    code: 429,
    message: "Cannot evict pod as it would violate the pod's disruption budget.",
    details: {
      causes: [{ reason: "DisruptionBudget", message }],
      ...(retryAfterSeconds && { retryAfterSeconds }),
    },
  });
}
