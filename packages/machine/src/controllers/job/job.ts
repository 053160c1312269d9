import {
  type Condition,
  Controller,
  controllerOf,
  deepEqual,
  isConditionTrue,
  type Job,
  keyOf,
  type Pod,
  resources,
  splitKey,
  timestamp,
} from "@spry/kube";
import { byController, byNamespace, type ControllerContext } from "../context.ts";
import { expiryMs, Expectations } from "../expectations.ts";
import {
  countPods,
  hasFinalizer,
  type JobCounts,
  type JobVerdict,
  verdictOf,
} from "./job-outcome.ts";
import { msUntilDeadline, msUntilRetry } from "./job-pace.ts";
import { deletePods, ignoreNotFound, managePods, release, target } from "./job-pods.ts";
import { type JobStatus, runningStatus, settle, withCondition } from "./job-status.ts";

/** The value of `spec.managedBy` that means this controller. */
const ownName = "kubernetes.io/job-controller";

/** Runs Pods until enough of them have succeeded. */
export function createJobController(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const expectations = new Expectations(clock);
  const controller = new Controller({
    name: "job",
    workers: 4,
    clock,
    log,
    reconcile: (key) => reconcileJob(context, expectations, key),
  });
  caches.jobs.onChange(({ type, object }) => {
    if (type === "deleted") expectations.forget(object.metadata.uid ?? "");
    controller.enqueue(keyOf(object));
  });
  caches.pods.onChange(({ object }) => {
    const owner = controllerOf(object);
    if (owner?.kind === "Job") controller.enqueue(`${object.metadata.namespace}/${owner.name}`);
    // Its Job is deleted: no other controller would remove the finalizer.
    else if (!owner && hasFinalizer(object)) void release(context, [object]).catch(() => {});
  });
  return controller;
}

async function reconcileJob(
  context: ControllerContext,
  expectations: Expectations,
  key: string,
): Promise<{ requeueAfterMs: number } | void> {
  const { caches, clock } = context;
  const job = caches.jobs.get(key);
  const uid = job?.metadata.uid;
  await releaseOrphans(context, key, uid);
  if (!job || !uid || isManagedElsewhere(job)) return;
  const pods = caches.pods.byIndex(byController, uid);
  if (job.metadata.deletionTimestamp) return release(context, pods);
  if (isFinished(job)) return finishJob(context, job, pods);

  if (!expectations.fulfilled(uid, pods)) return { requeueAfterMs: expiryMs };
  const counts = countPods(job, pods);
  const verdict = verdictOf(job, pods, counts, clock);
  if (verdict) return endJob(context, job, pods, counts, verdict);

  const pauseMs = msUntilRetry(job, counts, pods, clock);
  const { created, retryMs } = await managePods(context, expectations, job, counts, pauseMs);
  const { counters, settled } = settle(job, pods, counts);
  await writeStatus(context, job, runningStatus(context, job, counts, counters, created));
  await release(context, settled);
  const waits = [retryMs, msUntilDeadline(job, clock) ?? 0].filter((ms) => ms > 0);
  if (waits.length > 0) return { requeueAfterMs: Math.min(...waits) + 1 };
}

/** Pods of a Job that is deleted, or was created again under its name: no Job counts how they end. */
async function releaseOrphans(
  context: ControllerContext,
  key: string,
  uid: string | undefined,
): Promise<void> {
  const { caches, client } = context;
  const { namespace, name } = splitKey(key);
  const orphans = caches.pods.byIndex(byNamespace, namespace ?? "").filter((pod) => {
    const owner = controllerOf(pod);
    return owner?.kind === "Job" && owner.name === name && owner.uid !== uid && hasFinalizer(pod);
  });
  if (orphans.length === 0) return;
  // Not because of a cache that is behind.
  const present = await client.get(resources.jobs, { namespace, name }).catch(ignoreNotFound);
  const gone = orphans.filter((pod) => controllerOf(pod)?.uid !== present?.metadata.uid);
  await release(context, gone);
}

function isManagedElsewhere({ spec }: Job): boolean {
  return (spec?.managedBy ?? ownName) !== ownName;
}

function namedIn({ status }: Job): (pod: Pod) => boolean {
  const { succeeded = [], failed = [] } = status?.uncountedTerminatedPods ?? {};
  const uids = new Set([...succeeded, ...failed]);
  return ({ metadata }) => uids.has(metadata.uid ?? "");
}

function isFinished(job: Job): boolean {
  const conditions = job.status?.conditions as Condition[] | undefined;
  return isConditionTrue(conditions, "Complete") || isConditionTrue(conditions, "Failed");
}

/** Ends what still runs, then says the verdict: `Complete` and `Failed` mean that no Pod is left. */
async function endJob(
  context: ControllerContext,
  job: Job,
  pods: readonly Pod[],
  counts: JobCounts,
  verdict: JobVerdict,
): Promise<void> {
  const { clock, events } = context;
  const { reason, message } = verdict;
  const condition = { status: "True", reason, message } as const;
  // Written first and for good: with the Pods deleted, the facts behind the verdict are gone.
  const early = verdict.type === "Complete" ? "SuccessCriteriaMet" : "FailureTarget";
  const known = (job.status?.conditions ?? []) as Condition[];
  let conditions = known.some(({ type }) => type === early)
    ? known
    : withCondition(known, { ...condition, type: early }, clock);
  const running = counts.active.length + counts.terminating.length > 0;
  if (running) {
    const isNamed = namedIn(job);
    const cut =
      verdict.type === "Failed"
        ? counts.active.filter((pod) => hasFinalizer(pod) && !isNamed(pod))
        : [];
    // What a failed Job ends has failed with it; after a success it is of no interest.
    const fresh = { ...counts.fresh, failed: [...counts.fresh.failed, ...cut] };
    const indexes = counts.indexes && { ...counts.indexes, waiting: new Map<number, Pod>() };
    const { counters, settled } = settle(job, pods, { fresh, ...(indexes && { indexes }) });
    const status = runningStatus(context, job, counts, counters, -counts.active.length);
    const terminating = counts.terminating.length + counts.active.length;
    await writeStatus(context, job, { ...status, ready: 0, terminating, conditions });
    await release(context, settled);
    return deletePods(context, job, counts.active);
  }
  conditions = withCondition(conditions, { ...condition, type: verdict.type }, clock);
  const { completedIndexes, failedIndexes } = settle(job, pods, counts).counters;
  const indexStatus = {
    ...(completedIndexes ? { completedIndexes } : {}),
    ...(failedIndexes === undefined ? {} : { failedIndexes }),
  };
  await writeStatus(context, job, {
    startTime: job.status?.startTime ?? timestamp(clock),
    conditions,
    ready: 0,
    terminating: 0,
    ...indexStatus,
    ...(counts.succeeded ? { succeeded: counts.succeeded } : {}),
    ...(counts.failed ? { failed: counts.failed } : {}),
    uncountedTerminatedPods: {},
    ...(verdict.type === "Complete" ? { completionTime: timestamp(clock) } : {}),
  });
  if (verdict.type === "Complete")
    events.record(resources.jobs, job, {
      type: "Normal",
      reason: "Completed",
      message: "Job completed",
    });
  else events.record(resources.jobs, job, { type: "Warning", reason, message });
  await release(context, pods);
}

/** After the verdict: frees the Pods, and deletes the Job when its time to live is over. */
async function finishJob(
  context: ControllerContext,
  job: Job,
  pods: readonly Pod[],
): Promise<{ requeueAfterMs: number } | void> {
  await release(context, pods);
  const seconds = job.spec?.ttlSecondsAfterFinished;
  if (seconds === undefined) return;
  const end = ((job.status?.conditions ?? []) as Condition[]).find(
    ({ type, status }) => (type === "Complete" || type === "Failed") && status === "True",
  );
  const ms = Date.parse(end?.lastTransitionTime ?? "") + seconds * 1000 - context.clock.now();
  if (ms > 0) return { requeueAfterMs: ms + 1 };
  const preconditions = { uid: job.metadata.uid ?? "" };
  await context.client
    .delete(resources.jobs, target(job), { preconditions, propagationPolicy: "Foreground" })
    .catch(ignoreNotFound);
}

async function writeStatus(
  { client }: ControllerContext,
  job: Job,
  status: JobStatus,
): Promise<void> {
  if (deepEqual(job.status, status)) return;
  await client.update(resources.jobs, { ...job, status }, { subresource: "status" });
}
