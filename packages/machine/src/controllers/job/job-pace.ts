import { type Clock, type Job, type Pod } from "@spry/kube";
import { earlierFailures } from "./indexes.ts";
import { type JobCounts } from "./job-outcome.ts";
import { isPodFailed } from "./policies.ts";

/** Undefined for a Job without a deadline, or that has not started. */
export function msUntilDeadline(job: Job, clock: Clock): number | undefined {
  const seconds = job.spec?.activeDeadlineSeconds;
  const start = job.status?.startTime;
  if (seconds === undefined || !start || job.spec?.suspend) return undefined;
  return Math.max(0, Date.parse(start) + seconds * 1000 - clock.now());
}

const firstBackoffMs = 10_000;
const lastBackoffMs = 600_000;

/** How long to wait after the latest failure: 10 s, doubled with each one since a success, at most 10 min. */
export function msUntilRetry(
  job: Job,
  counts: JobCounts,
  pods: readonly Pod[],
  clock: Clock,
): number {
  // Each index has a pause of its own.
  if (counts.failed === 0 || job.spec?.backoffLimitPerIndex !== undefined) return 0;
  const successes = pods.filter((pod) => pod.status?.phase === "Succeeded").map(endOf);
  const failures = pods.filter((pod) => isPodFailed(job, pod)).map(endOf);
  const since = failures.filter((end) => end > Math.max(0, ...successes));
  const count = successes.length > 0 ? since.length : counts.failed;
  return count === 0 ? 0 : msUntilAfter(count, Math.max(0, ...since), clock);
}

/** The same for one index with `backoffLimitPerIndex`: after the failures that its latest Pod records. */
export function msUntilIndexRetry(latest: Pod | undefined, clock: Clock): number {
  return latest ? msUntilAfter(earlierFailures(latest, true) + 1, endOf(latest), clock) : 0;
}

function msUntilAfter(failures: number, end: number, clock: Clock): number {
  const pause = Math.min(firstBackoffMs * 2 ** Math.min(failures - 1, 20), lastBackoffMs);
  const leftMs = Math.max(0, end + pause - clock.now());
  // An end in the future is of before the machine's clock was set back; how long ago it was is not known any more.
  return leftMs > pause + 1_000 ? 0 : leftMs;
}

/** When a Pod ended, or at least not before (`pkg/controller/job: getFinishedTime`). */
function endOf(pod: Pod): number {
  const ends = (pod.status?.containerStatuses ?? []).flatMap(({ state }) => {
    const at = Date.parse(state?.terminated?.finishedAt ?? "");
    return Number.isNaN(at) ? [] : at;
  });
  if (ends.length > 0) return Math.max(...ends);
  const ready = pod.status?.conditions?.find(({ type }) => type === "Ready");
  const { creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds = 0 } = pod.metadata;
  if (!ready && deletionTimestamp)
    return Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000;
  return Date.parse(ready?.lastTransitionTime ?? creationTimestamp ?? "") || 0;
}
