import {
  type Condition,
  type CronJob,
  isConditionTrue,
  isNotFound,
  type Job,
  resources,
} from "@spry/kube";
import { type ControllerContext } from "../context.ts";

/** Deletes the oldest of the ended Jobs that are more than the limits keep. */
export async function removeOldJobs(
  { client, events }: ControllerContext,
  cronJob: CronJob,
  jobs: readonly Job[],
): Promise<void> {
  const { successfulJobsHistoryLimit, failedJobsHistoryLimit } = cronJob.spec ?? {};
  const old = [
    ...beyond(jobs, "Complete", successfulJobsHistoryLimit),
    ...beyond(jobs, "Failed", failedJobsHistoryLimit),
  ];
  for (const { metadata } of old) {
    const { namespace, name = "", uid = "" } = metadata;
    try {
      await client.delete(
        resources.jobs,
        { namespace, name },
        { propagationPolicy: "Background", preconditions: { uid } },
      );
    } catch (error) {
      if (isNotFound(error)) continue;
      throw error;
    }
    if (cronJob.status) forget(cronJob.status, uid);
    const message = `Deleted job ${name}`;
    events.record(resources.cronJobs, cronJob, {
      type: "Normal",
      reason: "SuccessfulDelete",
      message,
    });
  }
}

function beyond(
  jobs: readonly Job[],
  end: "Complete" | "Failed",
  limit: number | undefined,
): Job[] {
  if (limit === undefined) return [];
  const ended = jobs.filter(
    (job) => endOf(job) === end && job.metadata.deletionTimestamp === undefined,
  );
  return ended.sort(byStartTime).slice(0, Math.max(0, ended.length - limit));
}

function byStartTime(a: Job, b: Job): number {
  const [first, second] = [a, b].map(
    ({ status }) => Date.parse(status?.startTime ?? "") || Infinity,
  ) as [number, number];
  if (first !== second) return first - second;
  return (a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1;
}

/** How a Job has ended; undefined while it has not. */
export function endOf(job: Job): "Complete" | "Failed" | undefined {
  const conditions = job.status?.conditions as Condition[] | undefined;
  return (["Complete", "Failed"] as const).find((type) => isConditionTrue(conditions, type));
}

/** Takes a Job off the list of those that run. */
export function forget(status: NonNullable<CronJob["status"]>, uid: string | undefined): void {
  const left = status.active?.filter((each) => each.uid !== uid) ?? [];
  if (left.length > 0) status.active = left;
  else delete status.active;
}
