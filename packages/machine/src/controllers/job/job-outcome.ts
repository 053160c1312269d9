import { type Clock, type Job, type Pod } from "@spry/kube";
import { isPodActive, isPodTerminal, isPodTerminating, restartsOf } from "../pod-state.ts";

/** Kept on every Pod of a Job until the Job's status has counted it: no outcome is lost or told twice. */
export const trackingFinalizer = "batch.kubernetes.io/job-tracking";

/** What the Job's Pods amount to. */
export interface JobCounts {
  active: Pod[];
  terminating: Pod[];
  ready: number;
  /** Including those not yet moved to the status counters. */
  succeeded: number;
  failed: number;
  /** Ended Pods that still carry the finalizer and are not named in the status. */
  fresh: { succeeded: Pod[]; failed: Pod[] };
}

export interface JobVerdict {
  type: "Complete" | "Failed";
  reason: "CompletionsReached" | "BackoffLimitExceeded" | "DeadlineExceeded" | "UnsupportedJob";
  message: string;
}

export function countPods(job: Job, pods: readonly Pod[]): JobCounts {
  const { succeeded = 0, failed = 0, uncountedTerminatedPods } = job.status ?? {};
  const named = new Set([
    ...(uncountedTerminatedPods?.succeeded ?? []),
    ...(uncountedTerminatedPods?.failed ?? []),
  ]);
  const fresh = pods.filter(
    (pod) => hasFinalizer(pod) && isPodTerminal(pod) && !named.has(pod.metadata.uid ?? ""),
  );
  const freshSucceeded = fresh.filter((pod) => pod.status?.phase === "Succeeded");
  const freshFailed = fresh.filter((pod) => pod.status?.phase === "Failed");
  const active = pods.filter(isPodActive);
  return {
    active,
    terminating: pods.filter((pod) => isPodTerminating(pod) && !isPodTerminal(pod)),
    ready: active.filter((pod) =>
      pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True"),
    ).length,
    succeeded:
      succeeded + (uncountedTerminatedPods?.succeeded?.length ?? 0) + freshSucceeded.length,
    failed: failed + (uncountedTerminatedPods?.failed?.length ?? 0) + freshFailed.length,
    fresh: { succeeded: freshSucceeded, failed: freshFailed },
  };
}

export function hasFinalizer(pod: Pod): boolean {
  return pod.metadata.finalizers?.includes(trackingFinalizer) ?? false;
}

/** Whether the Job has come to its end, by the rules of `pkg/controller/job: syncJob`. */
export function verdictOf(job: Job, counts: JobCounts, clock: Clock): JobVerdict | undefined {
  const { backoffLimit = 6, activeDeadlineSeconds, completions, completionMode } = job.spec ?? {};
  if (completionMode === "Indexed" || job.spec?.podFailurePolicy || job.spec?.successPolicy) {
    const message =
      "completionMode Indexed, podFailurePolicy and successPolicy are not supported by the embedded engine";
    return { type: "Failed", reason: "UnsupportedJob", message };
  }
  const early = job.status?.conditions?.find(
    ({ type, status }) =>
      status === "True" && (type === "SuccessCriteriaMet" || type === "FailureTarget"),
  );
  if (early) {
    const type = early.type === "FailureTarget" ? "Failed" : "Complete";
    const reason = early.reason as JobVerdict["reason"];
    return { type, reason, message: early.message ?? "" };
  }
  // A container that is restarted in place is a failure just as a Pod that is replaced.
  const restarts =
    job.spec?.template?.spec?.restartPolicy === "OnFailure"
      ? counts.active.reduce((sum, pod) => sum + restartsOf(pod), 0)
      : 0;
  if (counts.failed > backoffLimit || (restarts > 0 && restarts >= Math.max(1, backoffLimit)))
    return {
      type: "Failed",
      reason: "BackoffLimitExceeded",
      message: "Job has reached the specified backoff limit",
    };
  if (activeDeadlineSeconds !== undefined && msUntilDeadline(job, clock) === 0)
    return {
      type: "Failed",
      reason: "DeadlineExceeded",
      message: "Job was active longer than specified deadline",
    };
  // Without a number of completions, one success ends the Job once the other workers are done too.
  const done =
    completions === undefined
      ? counts.succeeded > 0 && counts.active.length === 0
      : counts.succeeded >= completions;
  if (done)
    return {
      type: "Complete",
      reason: "CompletionsReached",
      message: "Reached expected number of succeeded pods",
    };
  return undefined;
}

/** Undefined for a Job without a deadline, or that has not started. */
export function msUntilDeadline(job: Job, clock: Clock): number | undefined {
  const seconds = job.spec?.activeDeadlineSeconds;
  const start = job.status?.startTime;
  if (seconds === undefined || !start || job.spec?.suspend) return undefined;
  return Math.max(0, Date.parse(start) + seconds * 1000 - clock.now());
}

/** How many Pods should run now. */
export function wantedActive(job: Job, counts: JobCounts): number {
  const { parallelism = 1, completions } = job.spec ?? {};
  if (job.spec?.suspend) return 0;
  if (completions === undefined)
    return counts.succeeded > 0 ? Math.min(counts.active.length, parallelism) : parallelism;
  return Math.min(parallelism, Math.max(0, completions - counts.succeeded));
}

const firstBackoffMs = 10_000;
const lastBackoffMs = 600_000;

/** How long to wait after the latest failure: 10 s, doubled with each further one, at most 10 min. */
export function msUntilRetry(counts: JobCounts, pods: readonly Pod[], clock: Clock): number {
  if (counts.failed === 0) return 0;
  const ends = pods.filter((pod) => pod.status?.phase === "Failed").map(endOf);
  const pause = Math.min(firstBackoffMs * 2 ** Math.min(counts.failed - 1, 20), lastBackoffMs);
  return Math.max(0, Math.max(0, ...ends) + pause - clock.now());
}

/** When a Pod ended, or at least not before (`pkg/controller/job: getFinishedTime`). */
function endOf(pod: Pod): number {
  const ends = (pod.status?.containerStatuses ?? []).flatMap(({ state }) => {
    const at = Date.parse(state?.terminated?.finishedAt ?? "");
    return Number.isNaN(at) ? [] : at;
  });
  if (ends.length > 0) return Math.max(...ends);
  const ready = pod.status?.conditions?.find(({ type }) => type === "Ready");
  return Date.parse(ready?.lastTransitionTime ?? pod.metadata.creationTimestamp ?? "") || 0;
}
