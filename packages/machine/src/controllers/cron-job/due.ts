import { type CronJob } from "@spry/kube";
import { type Schedule } from "./schedule.ts";

/** What is due of a schedule at a moment (`pkg/controller/cronjob/utils.go`). Milliseconds. */
export interface Due {
  /** The latest time that has come and was not yet served; undefined when there is none. */
  at?: number;
  /** More than a hundred were missed: worth an Event. */
  tooMany: boolean;
}

/** Clocks differ a little: a pass that comes too early would see nothing due. */
const nextDelayMs = 100;
const manyMissed = 100;

/** Throws when the schedule never comes round. */
export function dueAt(cronJob: CronJob, schedule: Schedule, now: number): Due {
  const { startingDeadlineSeconds } = cronJob.spec ?? {};
  let since = lastConsidered(cronJob);
  // What is before the deadline will not be made up for: it need not be counted either.
  if (startingDeadlineSeconds !== undefined)
    since = Math.max(since, now - startingDeadlineSeconds * 1000);
  return mostRecent(schedule, since, now);
}

/** How long until the next look is worth it. */
export function msUntilNext(cronJob: CronJob, schedule: Schedule, now: number): number | undefined {
  const since = lastConsidered(cronJob);
  let from: number;
  try {
    const { at, missed } = mostRecent(schedule, since, now);
    from = at ?? (missed ? now : since);
  } catch {
    from = now;
  }
  const next = schedule.next(from);
  return next === undefined ? undefined : Math.max(0, next - now) + nextDelayMs;
}

function lastConsidered({ metadata, status }: CronJob): number {
  const text = status?.lastScheduleTime ?? metadata.creationTimestamp;
  return Date.parse(text ?? "") || 0;
}

function mostRecent(schedule: Schedule, since: number, now: number): Due & { missed: boolean } {
  const first = schedule.next(since);
  const second = first === undefined ? undefined : schedule.next(first);
  if (first === undefined || second === undefined)
    throw new Error("time difference between two schedules is less than 1 second");
  if (now < first) return { tooMany: false, missed: false };
  if (now < second) return { at: first, tooMany: false, missed: false };
  // Not one by one: after a year of standing still there may be half a million.
  const pause = second - first;
  const count = Math.floor((now - first) / pause) + 1;
  let at: number | undefined;
  for (
    let time = schedule.next(first + (count - 2) * pause);
    time !== undefined && time <= now;
    time = schedule.next(time)
  )
    at = time;
  return { ...(at === undefined ? {} : { at }), tooMany: count > manyMissed, missed: true };
}
