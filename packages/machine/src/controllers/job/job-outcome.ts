import { type Clock, type Job, type Pod } from "@spry/kube";
import { msUntilDeadline } from "./job-pace.ts";
import {
  isPodActive,
  isPodReady,
  isPodTerminal,
  isPodTerminating,
  restartsOf,
} from "../pod-state.ts";
import {
  countIndexes,
  earlierFailures,
  hasIndex,
  type Indexes,
  indexOf,
  isIndexed,
  parseIndexes,
  unionOf,
  withIndexes,
} from "./indexes.ts";
import { failureVerdict, isPodFailed, successVerdict } from "./policies.ts";

/** Kept on every Pod of a Job until the Job's status has counted it: no outcome is lost or counted twice. */
export const trackingFinalizer = "batch.kubernetes.io/job-tracking";

/** What the Job's Pods amount to. */
export interface JobCounts {
  active: Pod[];
  terminating: Pod[];
  ready: number;
  /** Including those not yet moved to the status counters. */
  succeeded: number;
  /** The same, without those that the `podFailurePolicy` ignores. */
  failed: number;
  /** Ended Pods that still carry the finalizer and are not named in the status. */
  fresh: { succeeded: Pod[]; failed: Pod[]; ignored: Pod[] };
  /** Of an Indexed Job. */
  indexes?: JobIndexes;
}

export interface JobIndexes {
  succeeded: Indexes;
  /** With `backoffLimitPerIndex`. */
  failed?: Indexes;
  /** The latest failed Pod of each index that waits for another try; it holds the count of failures. */
  waiting: ReadonlyMap<number, Pod>;
}

export interface JobVerdict {
  type: "Complete" | "Failed";
  reason:
    | "CompletionsReached"
    | "SuccessPolicy"
    | "BackoffLimitExceeded"
    | "DeadlineExceeded"
    | "PodFailurePolicy"
    | "MaxFailedIndexesExceeded"
    | "FailedIndexes";
  message: string;
}

export function countPods(job: Job, pods: readonly Pod[]): JobCounts {
  const { succeeded = 0, failed = 0, uncountedTerminatedPods } = job.status ?? {};
  const named = new Set([
    ...(uncountedTerminatedPods?.succeeded ?? []),
    ...(uncountedTerminatedPods?.failed ?? []),
  ]);
  const fresh = pods.filter((pod) => hasFinalizer(pod) && !named.has(pod.metadata.uid ?? ""));
  const freshSucceeded = fresh.filter((pod) => pod.status?.phase === "Succeeded");
  const ended = fresh.filter((pod) => isPodFailed(job, pod));
  const [ignored, freshFailed] = partition(
    ended,
    (pod) =>
      failureVerdict(job, pod).action === "Ignore" ||
      (isIndexed(job) && indexOf(pod, job) === undefined),
  );
  const active = pods.filter(isPodActive);
  const indexes = isIndexed(job) ? countIndexesOf(job, pods, active, freshSucceeded) : undefined;
  return {
    active,
    terminating: pods.filter((pod) => isPodTerminating(pod) && !isPodTerminal(pod)),
    ready: active.filter(isPodReady).length,
    succeeded: indexes
      ? countIndexes(indexes.succeeded)
      : succeeded + (uncountedTerminatedPods?.succeeded?.length ?? 0) + freshSucceeded.length,
    failed: failed + (uncountedTerminatedPods?.failed?.length ?? 0) + freshFailed.length,
    fresh: { succeeded: freshSucceeded, failed: freshFailed, ignored },
    ...(indexes ? { indexes } : {}),
  };
}

function countIndexesOf(
  job: Job,
  pods: readonly Pod[],
  active: readonly Pod[],
  freshSucceeded: readonly Pod[],
): JobIndexes {
  const { completions = 0, backoffLimitPerIndex } = job.spec ?? {};
  const of = (some: readonly Pod[]) => some.flatMap((pod) => indexOf(pod, job) ?? []);
  const before = parseIndexes(job.status?.completedIndexes, completions);
  const succeeded = withIndexes(before, of(freshSucceeded));
  if (backoffLimitPerIndex === undefined) return { succeeded, waiting: new Map() };
  const unsettled = pods.filter((pod) => hasFinalizer(pod) && isPodFailed(job, pod));
  const lost = unsettled.filter((pod) => {
    const { action } = failureVerdict(job, pod);
    if (action === "FailIndex") return true;
    return action !== "Ignore" && earlierFailures(pod) >= backoffLimitPerIndex;
  });
  const failed = withIndexes(parseIndexes(job.status?.failedIndexes, completions), of(lost));
  const settled = withIndexes(unionOf(succeeded, failed), of(active));
  const waiting = new Map<number, Pod>();
  for (const pod of unsettled) {
    const index = indexOf(pod, job);
    if (index === undefined || hasIndex(settled, index)) continue;
    const known = waiting.get(index);
    if (!known || earlierFailures(known, true) <= earlierFailures(pod, true))
      waiting.set(index, pod);
  }
  return { succeeded, failed, waiting };
}

function partition<T>(values: readonly T[], test: (value: T) => boolean): [T[], T[]] {
  return [values.filter(test), values.filter((value) => !test(value))];
}

export function hasFinalizer(pod: Pod): boolean {
  return pod.metadata.finalizers?.includes(trackingFinalizer) ?? false;
}

/** Whether the Job has come to its end, by the rules of `pkg/controller/job: syncJob`. */
export function verdictOf(
  job: Job,
  pods: readonly Pod[],
  counts: JobCounts,
  clock: Clock,
): JobVerdict | undefined {
  return (
    earlierVerdict(job) ??
    policyFailure(job, pods) ??
    limitFailure(job, counts, clock) ??
    indexFailure(job, counts) ??
    success(job, counts)
  );
}

/** What an earlier pass has found holds, though the Pods that it was found by may be gone. */
function earlierVerdict(job: Job): JobVerdict | undefined {
  const find = (wanted: string) =>
    job.status?.conditions?.find(({ type, status }) => type === wanted && status === "True");
  const early = find("SuccessCriteriaMet") ?? find("FailureTarget");
  if (!early) return undefined;
  const type = early.type === "FailureTarget" ? "Failed" : "Complete";
  const reason = early.reason as JobVerdict["reason"];
  return { type, reason, message: early.message ?? "" };
}

function policyFailure(job: Job, pods: readonly Pod[]): JobVerdict | undefined {
  if (!job.spec?.podFailurePolicy) return undefined;
  for (const pod of pods) {
    if (!isPodFailed(job, pod)) continue;
    const { message } = failureVerdict(job, pod);
    if (message) return { type: "Failed", reason: "PodFailurePolicy", message };
  }
  return undefined;
}

function limitFailure(job: Job, counts: JobCounts, clock: Clock): JobVerdict | undefined {
  const { backoffLimit = 6, activeDeadlineSeconds } = job.spec ?? {};
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
  return undefined;
}

function indexFailure(job: Job, { indexes }: JobCounts): JobVerdict | undefined {
  const { maxFailedIndexes, completions = 0 } = job.spec ?? {};
  if (!indexes?.failed) return undefined;
  const failed = countIndexes(indexes.failed);
  if (maxFailedIndexes !== undefined && failed > maxFailedIndexes)
    return {
      type: "Failed",
      reason: "MaxFailedIndexesExceeded",
      message: "Job has exceeded the specified maximal number of failed indexes",
    };
  if (failed > 0 && failed + countIndexes(indexes.succeeded) >= completions)
    return { type: "Failed", reason: "FailedIndexes", message: "Job has failed indexes" };
  return undefined;
}

function success(job: Job, counts: JobCounts): JobVerdict | undefined {
  const { completions } = job.spec ?? {};
  const rule = counts.indexes && successVerdict(job, counts.indexes.succeeded);
  if (rule) return { type: "Complete", reason: "SuccessPolicy", message: rule };
  // Without a number of completions, one success ends the Job once the other workers are done too.
  const done =
    completions === undefined
      ? counts.succeeded > 0 && counts.active.length === 0
      : counts.succeeded >= completions;
  if (!done) return undefined;
  return {
    type: "Complete",
    reason: "CompletionsReached",
    message: "Reached expected number of succeeded pods",
  };
}

/** How many Pods should run now. */
export function wantedActive(job: Job, counts: JobCounts): number {
  const { parallelism = 1, completions } = job.spec ?? {};
  if (job.spec?.suspend) return 0;
  if (completions === undefined)
    return counts.succeeded > 0 ? Math.min(counts.active.length, parallelism) : parallelism;
  return Math.min(parallelism, Math.max(0, completions - counts.succeeded));
}
