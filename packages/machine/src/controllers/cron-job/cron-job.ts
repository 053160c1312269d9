import {
  Controller,
  controllerRef,
  type CronJob,
  deepEqual,
  isAlreadyExists,
  isControlledBy,
  isNotFound,
  type Job,
  keyOf,
  messageOf,
  resources,
} from "@spry/kube";
import { byController, type ControllerContext } from "../context.ts";
import { dueAt, msUntilNext } from "./due.ts";
import { endOf, forget, removeOldJobs } from "./history.ts";
import { isTimeZone, parseSchedule, type Schedule } from "./schedule.ts";
import { localTimestamp } from "./local-timestamp.ts";

type Status = NonNullable<CronJob["status"]>;
type Requeue = { requeueAfterMs: number } | void;

const timestampAnnotation = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/** Starts a Job whenever a schedule says so. */
export function createCronJobController(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const controller = new Controller({
    name: "cronjob",
    workers: 2,
    clock,
    log,
    reconcile: (key) => reconcileCronJob(context, key),
  });
  caches.cronJobs.onChange((change) => {
    const { object } = change;
    // Times that only the new schedule has are not made up for: it counts from its next time.
    const changed = change.type === "updated" && !isSameSchedule(object, change.previous);
    const waitMs = changed ? msUntilNextOf(object, clock.now()) : 0;
    if (waitMs) controller.queue.addAfter(keyOf(object), waitMs);
    else controller.enqueue(keyOf(object));
  });
  caches.jobs.onChange(({ object }) => {
    const owner = object.metadata.ownerReferences?.find(({ controller: is }) => is);
    if (owner?.kind === "CronJob") controller.enqueue(`${object.metadata.namespace}/${owner.name}`);
  });
  return controller;
}

async function reconcileCronJob(context: ControllerContext, key: string): Promise<Requeue> {
  const { caches, client } = context;
  const cached = caches.cronJobs.get(key);
  if (!cached?.metadata.uid) return;
  // One copy takes all changes of the pass, for one write at its end.
  const cronJob: CronJob = { ...cached, status: { ...cached.status } };
  const jobs = caches.jobs.byIndex(byController, cached.metadata.uid);
  await removeOldJobs(context, cronJob, jobs);
  let next: Requeue;
  try {
    // Also what a Job that is not kept has come to.
    await followJobs(context, cronJob, jobs);
    next = await startDue(context, cronJob);
  } finally {
    if (!deepEqual(cached.status ?? {}, cronJob.status ?? {}))
      await client
        .update(resources.cronJobs, cronJob, { subresource: "status" })
        .catch(ignoreNotFound);
  }
  return next;
}

/** Brings `status.active` and `status.lastSuccessfulTime` up to what the Jobs say. */
async function followJobs(
  context: ControllerContext,
  cronJob: CronJob,
  jobs: readonly Job[],
): Promise<void> {
  const { client } = context;
  const status = statusOf(cronJob);
  for (const job of jobs) {
    const known = isActive(status, job);
    const end = endOf(job);
    if (!end) {
      if (known) continue;
      // Perhaps it was this controller, and its cache does not show it yet.
      const current = await client.get(resources.cronJobs, targetOf(cronJob));
      if (isActive(current.status, job)) continue;
      const message = `Saw a job that the controller did not create or forgot: ${job.metadata.name}`;
      note(context, cronJob, "Warning", "UnexpectedJob", message);
      continue;
    }
    if (known) {
      forget(status, job.metadata.uid);
      const message = `Saw completed job: ${job.metadata.name}, condition: ${end}`;
      note(context, cronJob, "Normal", "SawCompletedJob", message);
    }
    const completed = job.status?.completionTime;
    const last = status.lastSuccessfulTime;
    if (end === "Complete" && completed && (!last || Date.parse(completed) > Date.parse(last)))
      Object.assign(status, { lastSuccessfulTime: completed });
  }
  const there = new Set(jobs.map(({ metadata }) => metadata.uid));
  for (const { uid, name = "", namespace } of status.active ?? []) {
    if (there.has(uid)) continue;
    try {
      await client.get(resources.jobs, { namespace, name });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      forget(status, uid);
      note(context, cronJob, "Normal", "MissingJob", `Active job went missing: ${name}`);
    }
  }
}

/** Starts what is due; says when to look again. */
async function startDue(context: ControllerContext, cronJob: CronJob): Promise<Requeue> {
  const { metadata, spec } = cronJob;
  const now = context.clock.now();
  if (metadata.deletionTimestamp || !spec) return;
  const warn = (reason: string, message: string) =>
    note(context, cronJob, "Warning", reason, message);
  if (spec.timeZone !== undefined && !isTimeZone(spec.timeZone)) {
    const zone = JSON.stringify(spec.timeZone);
    warn("UnknownTimeZone", `invalid timeZone: ${zone}: unknown time zone ${spec.timeZone}`);
    return;
  }
  if (spec.suspend) return;
  const quoted = JSON.stringify(spec.schedule);
  let schedule: Schedule;
  try {
    schedule = parseSchedule(spec.schedule, spec.timeZone);
  } catch (error) {
    warn("UnparseableSchedule", `unparseable schedule: ${quoted} : ${messageOf(error)}`);
    return;
  }
  try {
    const { at, tooMany } = dueAt(cronJob, schedule, now);
    if (tooMany)
      warn(
        "TooManyMissedTimes",
        "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
      );
    if (at !== undefined && isWanted(context, cronJob, at, now))
      await startJob(context, cronJob, at);
  } catch (error) {
    if (!(error instanceof Error) || !error.message.startsWith("time difference")) throw error;
    warn("InvalidSchedule", `invalid schedule: ${spec.schedule} : ${error.message}`);
    return;
  }
  const requeueAfterMs = msUntilNext(cronJob, schedule, now);
  return requeueAfterMs === undefined ? undefined : { requeueAfterMs };
}

function isWanted(context: ControllerContext, cronJob: CronJob, at: number, now: number): boolean {
  const { spec } = cronJob;
  const status = statusOf(cronJob);
  const deadline = spec?.startingDeadlineSeconds;
  if (deadline !== undefined && at + deadline * 1000 < now) {
    const when = new Date(at).toUTCString().replace("GMT", "+0000");
    const message = `Missed scheduled time to start a job: ${when}`;
    note(context, cronJob, "Warning", "MissSchedule", message);
    return false;
  }
  const name = jobNameOf(cronJob, at);
  const served = Date.parse(status.lastScheduleTime ?? "") === at;
  if (served || status.active?.some((each) => each.name === name)) return false;
  if (spec?.concurrencyPolicy === "Forbid" && status.active?.length) {
    const message =
      "Not starting job because prior execution is running and concurrency policy is Forbid";
    note(context, cronJob, "Normal", "JobAlreadyActive", message);
    return false;
  }
  return true;
}

/** The name says for which time it is, so that no Job is made twice whatever the cache shows. */
async function startJob(context: ControllerContext, cronJob: CronJob, at: number): Promise<void> {
  const { client } = context;
  const status = statusOf(cronJob);
  if (cronJob.spec?.concurrencyPolicy === "Replace")
    for (const { uid, name = "", namespace } of status.active ?? []) {
      await client
        .delete(resources.jobs, { namespace, name }, { propagationPolicy: "Background" })
        .catch(ignoreNotFound);
      forget(status, uid);
      note(context, cronJob, "Normal", "SuccessfulDelete", `Deleted job ${name}`);
    }
  const wanted = desiredJob(cronJob, at);
  let job: Job;
  try {
    job = await client.create(resources.jobs, wanted);
    const message = `Created job ${job.metadata.name}`;
    note(context, cronJob, "Normal", "SuccessfulCreate", message);
  } catch (error) {
    if (!isAlreadyExists(error)) {
      const message = `Error creating job: ${messageOf(error)}`;
      note(context, cronJob, "Warning", "FailedCreate", message);
      throw error;
    }
    job = await client.get(resources.jobs, targetOf(wanted));
    // Another client's Job has the name: this run is skipped.
    if (!isControlledBy(job, cronJob) || isActive(status, job)) return;
  }
  const { namespace, name, uid, resourceVersion } = job.metadata;
  const reference = { apiVersion: "batch/v1", kind: "Job", namespace, name, uid, resourceVersion };
  const lastScheduleTime = new Date(at).toISOString().replace(".000Z", "Z");
  if (!endOf(job))
    status.active = [...(status.active ?? []), reference] as typeof status.active & {};
  Object.assign(status, { lastScheduleTime });
}

function desiredJob(cronJob: CronJob, at: number): Job {
  const { metadata, spec } = cronJob;
  const template = spec?.jobTemplate;
  const { labels, annotations } = template?.metadata ?? {};
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name: jobNameOf(cronJob, at),
      ...(metadata.namespace ? { namespace: metadata.namespace } : {}),
      ...(labels ? { labels } : {}),
      annotations: { ...annotations, [timestampAnnotation]: localTimestamp(at, spec?.timeZone) },
      ownerReferences: [controllerRef(resources.cronJobs, cronJob)],
    },
    ...(template?.spec ? { spec: template.spec } : {}),
  };
}

function jobNameOf({ metadata }: CronJob, at: number): string {
  return `${metadata.name}-${Math.floor(at / 60_000)}`;
}

function isActive(status: Status | undefined, job: Job): boolean {
  return status?.active?.some(({ uid }) => uid === job.metadata.uid) ?? false;
}

function statusOf(cronJob: CronJob): Status {
  return (cronJob.status ??= {});
}

function isSameSchedule({ spec: a }: CronJob, { spec: b }: CronJob): boolean {
  return a?.schedule === b?.schedule && a?.timeZone === b?.timeZone;
}

function msUntilNextOf(cronJob: CronJob, now: number): number | undefined {
  const { schedule = "", timeZone } = cronJob.spec ?? {};
  try {
    return msUntilNext(cronJob, parseSchedule(schedule, timeZone), now);
  } catch {
    // What is wrong with it is said in the pass.
    return undefined;
  }
}

function note(
  { events }: ControllerContext,
  cronJob: CronJob,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
): void {
  events.record(resources.cronJobs, cronJob, { type, reason, message });
}

function ignoreNotFound(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

function targetOf({ metadata }: CronJob | Job) {
  return { namespace: metadata.namespace, name: metadata.name ?? "" };
}
