import {
  type Condition,
  Controller,
  controllerOf,
  deepEqual,
  isConditionTrue,
  isNotFound,
  type Job,
  keyOf,
  messageOf,
  type Pod,
  resources,
  setCondition,
  splitKey,
  timestamp,
} from "@spry/kube";
import { byController, byNamespace, type ControllerContext } from "../context.ts";
import { expiryMs, Expectations } from "../expectations.ts";
import { podFromTemplate } from "../pod-template.ts";
import { podsToDelete } from "../scale-down.ts";
import {
  countPods,
  hasFinalizer,
  type JobCounts,
  type JobVerdict,
  msUntilDeadline,
  msUntilRetry,
  trackingFinalizer,
  verdictOf,
  wantedActive,
} from "./job-outcome.ts";

type JobStatus = NonNullable<Job["status"]>;

const maxBurst = 500;
/** Named at a time in the status; the rest is counted by the passes that follow. */
const maxUncounted = 500;

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
    // Its Job is gone: nobody else would take the finalizer away.
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
  if (!job || !uid || job.spec?.managedBy) return;
  const pods = caches.pods.byIndex(byController, uid);
  if (job.metadata.deletionTimestamp) return release(context, pods);
  if (isFinished(job)) return finishJob(context, job, pods);

  if (!expectations.fulfilled(uid, pods)) return { requeueAfterMs: expiryMs };
  const counts = countPods(job, pods);
  const verdict = verdictOf(job, counts, clock);
  if (verdict) return endJob(context, job, pods, counts, verdict);

  const retryMs = msUntilRetry(counts, pods, clock);
  const created = await managePods(context, expectations, job, counts, retryMs);
  await writeStatus(context, job, runningStatus(context, job, pods, counts, created));
  await release(
    context,
    pods.filter((pod) => isNamed(job, pod)),
  );
  const waits = [retryMs, msUntilDeadline(job, clock) ?? 0].filter((ms) => ms > 0);
  if (waits.length > 0) return { requeueAfterMs: Math.min(...waits) + 1 };
}

/** Pods of a Job that is gone, or was made again by its name: their ends are counted by nobody. */
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

function isFinished(job: Job): boolean {
  const conditions = job.status?.conditions as Condition[] | undefined;
  return isConditionTrue(conditions, "Complete") || isConditionTrue(conditions, "Failed");
}

function isNamed(job: Job, pod: Pod): boolean {
  const { succeeded = [], failed = [] } = job.status?.uncountedTerminatedPods ?? {};
  const uid = pod.metadata.uid ?? "";
  return succeeded.includes(uid) || failed.includes(uid);
}

/** Brings the running Pods to the number wanted; returns how many were created (negative: deleted). */
async function managePods(
  context: ControllerContext,
  expectations: Expectations,
  job: Job,
  counts: JobCounts,
  retryMs: number,
): Promise<number> {
  const { client, events, clock } = context;
  const owner = job.metadata.uid ?? "";
  const wanted = wantedActive(job, counts);
  const missing = wanted - counts.active.length;
  if (missing < 0) {
    const excess = podsToDelete(counts.active, -missing, clock.now());
    await deletePods(context, excess);
    for (const pod of excess) expectations.expect(owner, pod.metadata.uid ?? "", "gone");
    return missing;
  }
  // A Pod on its way out still runs; its successor waits, or more than `parallelism` would run.
  const room = missing - counts.terminating.length;
  if (room <= 0 || retryMs > 0) return 0;
  const create = async () => {
    const created = await client.create(resources.pods, desiredPod(job));
    expectations.expect(owner, created.metadata.uid ?? "", "seen");
    const message = `Created pod: ${created.metadata.name}`;
    events.record(resources.jobs, job, { type: "Normal", reason: "SuccessfulCreate", message });
  };
  const results = await Promise.allSettled(
    Array.from({ length: Math.min(room, maxBurst) }, create),
  );
  const failed = results.find((result) => result.status === "rejected");
  if (!failed) return room;
  const message = `Error creating: ${messageOf(failed.reason)}`;
  events.record(resources.jobs, job, { type: "Warning", reason: "FailedCreate", message });
  throw failed.reason;
}

function desiredPod(job: Job): Pod {
  const pod = podFromTemplate(job.spec?.template, resources.jobs, job);
  pod.metadata.finalizers = [...(pod.metadata.finalizers ?? []), trackingFinalizer];
  return pod;
}

function runningStatus(
  { clock, events }: ControllerContext,
  job: Job,
  pods: readonly Pod[],
  counts: JobCounts,
  created: number,
): JobStatus {
  const before = job.status ?? {};
  const carriesFinalizer = new Set(
    pods.flatMap((pod) => (hasFinalizer(pod) ? (pod.metadata.uid ?? "") : [])),
  );
  const move = (kind: "succeeded" | "failed") => {
    const named = before.uncountedTerminatedPods?.[kind] ?? [];
    const kept = named.filter((uid) => carriesFinalizer.has(uid));
    const fresh = counts.fresh[kind].map((pod) => pod.metadata.uid ?? "");
    return {
      counted: (before[kind] ?? 0) + named.length - kept.length,
      named: [...kept, ...fresh].slice(0, maxUncounted),
    };
  };
  const succeeded = move("succeeded");
  const failed = move("failed");
  let conditions = (before.conditions ?? []) as Condition[];
  const suspended = isConditionTrue(conditions, "Suspended");
  if (job.spec?.suspend && !suspended) {
    const message = "Job suspended";
    conditions = setCondition(
      conditions,
      { type: "Suspended", status: "True", reason: "JobSuspended", message },
      clock,
    );
    events.record(resources.jobs, job, { type: "Normal", reason: "Suspended", message });
  } else if (!job.spec?.suspend && suspended) {
    const message = "Job resumed";
    conditions = setCondition(
      conditions,
      { type: "Suspended", status: "False", reason: "JobResumed", message },
      clock,
    );
    events.record(resources.jobs, job, { type: "Normal", reason: "Resumed", message });
  }
  const resumed = suspended && !job.spec?.suspend;
  const startTime = before.startTime && !resumed ? before.startTime : timestamp(clock);
  const active = counts.active.length + created;
  return {
    ...(conditions.length > 0 ? { conditions: conditions } : {}),
    ...(job.spec?.suspend ? {} : { startTime: startTime }),
    ...(active > 0 ? { active } : {}),
    ready: counts.ready,
    terminating: counts.terminating.length,
    ...(succeeded.counted ? { succeeded: succeeded.counted } : {}),
    ...(failed.counted ? { failed: failed.counted } : {}),
    uncountedTerminatedPods: {
      ...(succeeded.named.length > 0 ? { succeeded: succeeded.named } : {}),
      ...(failed.named.length > 0 ? { failed: failed.named } : {}),
    },
  };
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
  let conditions = setCondition(known, { ...condition, type: early }, clock);
  const running = counts.active.length + counts.terminating.length > 0;
  if (running) {
    const status = runningStatus(context, job, pods, counts, -counts.active.length);
    await writeStatus(context, job, { ...status, conditions: conditions });
    return deletePods(context, counts.active);
  }
  conditions = setCondition(conditions, { ...condition, type: verdict.type }, clock);
  await writeStatus(context, job, {
    startTime: job.status?.startTime ?? timestamp(clock),
    conditions,
    ready: 0,
    terminating: 0,
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
    .delete(resources.jobs, target(job), { preconditions, propagationPolicy: "Background" })
    .catch(ignoreNotFound);
}

/** Ended by the controller itself, these Pods are neither successes nor failures: nothing to count. */
async function deletePods(context: ControllerContext, pods: readonly Pod[]): Promise<void> {
  const { client, events } = context;
  await release(context, pods);
  await Promise.all(
    pods.map(async (pod) => {
      const preconditions = { uid: pod.metadata.uid ?? "" };
      await client.delete(resources.pods, target(pod), { preconditions }).catch(ignoreNotFound);
      const message = `Deleted pod: ${pod.metadata.name}`;
      events.record(resources.pods, pod, { type: "Normal", reason: "SuccessfulDelete", message });
    }),
  );
}

/** Takes the finalizer off, so that the Pods can go. */
async function release({ client }: ControllerContext, pods: readonly Pod[]): Promise<void> {
  for (const pod of pods) {
    if (!hasFinalizer(pod)) continue;
    const finalizers = pod.metadata.finalizers?.filter((name) => name !== trackingFinalizer) ?? [];
    const { uid, resourceVersion } = pod.metadata;
    await client
      .patch(resources.pods, target(pod), { metadata: { uid, resourceVersion, finalizers } })
      .catch(ignoreNotFound);
  }
}

async function writeStatus(
  { client }: ControllerContext,
  job: Job,
  status: JobStatus,
): Promise<void> {
  if (deepEqual(job.status, status)) return;
  await client.update(resources.jobs, { ...job, status }, { subresource: "status" });
}

function ignoreNotFound(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

function target({ metadata }: Pod | Job) {
  return { namespace: metadata.namespace, name: metadata.name ?? "" };
}
