import {
  type Clock,
  type Condition,
  isConditionTrue,
  type Job,
  type Pod,
  resources,
  setCondition,
  timestamp,
} from "@spry/kube";
import { type ControllerContext } from "../context.ts";
import { countIndexes, formatIndexes } from "./indexes.ts";
import { hasFinalizer, type JobCounts } from "./job-outcome.ts";

export type JobStatus = NonNullable<Job["status"]>;

/** Ended Pods that one pass counts; the passes that follow count the rest. */
const maxUncounted = 500;

/** Counters of a status, and the Pods that they hold: their finalizer may go once this is written. */
export interface Settlement {
  counters: Pick<
    JobStatus,
    "succeeded" | "failed" | "uncountedTerminatedPods" | "completedIndexes" | "failedIndexes"
  >;
  settled: Pod[];
}

/**
 * Names ended Pods in `uncountedTerminatedPods`, and counts those named before whose finalizer is
 * gone: whatever fails in between, each is counted once. Those of indexes need no names.
 */
export function settle(
  job: Job,
  pods: readonly Pod[],
  { fresh, indexes }: Pick<JobCounts, "fresh" | "indexes">,
): Settlement {
  const before = job.status ?? {};
  const carriers = pods.filter(hasFinalizer);
  const uids = new Set(carriers.map(({ metadata }) => metadata.uid ?? ""));
  const waiting = new Set(indexes?.waiting.values());
  const settled: Pod[] = [];
  const move = (kind: "succeeded" | "failed") => {
    const named = before.uncountedTerminatedPods?.[kind] ?? [];
    const kept = named.filter((uid) => uids.has(uid));
    const free = Math.max(0, maxUncounted - kept.length);
    const added = fresh[kind].filter((pod) => !waiting.has(pod)).slice(0, free);
    settled.push(...added, ...carriers.filter(({ metadata }) => kept.includes(metadata.uid ?? "")));
    const addedUids = added.map(({ metadata }) => metadata.uid ?? "");
    return {
      counted: (before[kind] ?? 0) + named.length - kept.length,
      named: indexes && kind === "succeeded" ? [] : [...kept, ...addedUids],
    };
  };
  const succeeded = move("succeeded");
  const failed = move("failed");
  settled.push(...fresh.ignored.filter((pod) => !waiting.has(pod)));
  const succeededCount = indexes ? countIndexes(indexes.succeeded) : succeeded.counted;
  const completed = formatIndexes(indexes?.succeeded ?? []);
  return {
    settled,
    counters: {
      ...(succeededCount ? { succeeded: succeededCount } : {}),
      ...(failed.counted ? { failed: failed.counted } : {}),
      ...(completed ? { completedIndexes: completed } : {}),
      ...(indexes?.failed ? { failedIndexes: formatIndexes(indexes.failed) } : {}),
      uncountedTerminatedPods: {
        ...(succeeded.named.length > 0 ? { succeeded: succeeded.named } : {}),
        ...(failed.named.length > 0 ? { failed: failed.named } : {}),
      },
    },
  };
}

/** A Job's conditions say in `lastProbeTime` when they were written. */
export function withCondition(
  conditions: readonly Condition[],
  condition: Condition,
  clock: Clock,
): Condition[] {
  const probed = { ...condition, lastProbeTime: timestamp(clock) };
  return setCondition<Condition>(conditions, probed, clock);
}

/** The status of a Job that continues; `created` Pods (negative: deleted) are not in the counts yet. */
export function runningStatus(
  { clock, events }: ControllerContext,
  job: Job,
  counts: JobCounts,
  counters: Settlement["counters"],
  created: number,
): JobStatus {
  const before = job.status ?? {};
  let conditions = (before.conditions ?? []) as Condition[];
  const suspended = isConditionTrue(conditions, "Suspended");
  if (job.spec?.suspend && !suspended) {
    const message = "Job suspended";
    conditions = withCondition(
      conditions,
      { type: "Suspended", status: "True", reason: "JobSuspended", message },
      clock,
    );
    events.record(resources.jobs, job, { type: "Normal", reason: "Suspended", message });
  } else if (!job.spec?.suspend && suspended) {
    const message = "Job resumed";
    conditions = withCondition(
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
    ...counters,
  };
}
