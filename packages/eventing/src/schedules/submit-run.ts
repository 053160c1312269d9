import { type Function, type FunctionSchedule } from "@spry/function";
import { type ObjectKey } from "@spry/kube";
import { type Queue } from "@spry/queue";
import { callBounds } from "../calls/call.ts";
import { type CallSubmitter } from "../calls/submit.ts";

/** What is kept of a schedule. */
export interface KeptSchedule {
  /** Runs that were due up to then have been handled; RFC 3339. */
  seenUpTo: string;
  lastCall?: string;
}

/** Of one Function; further ones are left out. */
export const maxSchedules = 100;

export const schedulesOf = (fn: Pick<Function, "spec"> | undefined): FunctionSchedule[] =>
  (fn?.spec.schedules ?? []).slice(0, maxSchedules);

export const scheduleBucket = "schedules";

export const isoTime = (ms: number): string => new Date(ms).toISOString();

/** Records up to when a schedule has been seen to. */
export function keepSchedule(
  queue: Queue,
  id: string,
  due: number,
  lastCall?: string,
): Promise<void> {
  const kept: KeptSchedule = {
    seenUpTo: isoTime(due),
    ...(lastCall === undefined ? {} : { lastCall }),
  };
  return queue.put({ bucket: scheduleBucket, key: id, value: JSON.stringify(kept) });
}

const defaultDeadlineSeconds = 300;

/** How late a run may start. */
export const deadlineMsOf = ({
  startingDeadlineSeconds = defaultDeadlineSeconds,
}: FunctionSchedule): number => startingDeadlineSeconds * 1_000;

/** Submits the call of a run that is due at `due` (ms). The consumer of the Function's calls exists. Resolves with the call's id. */
export async function submitRun(
  { queue, submitter }: { queue: Queue; submitter: CallSubmitter },
  key: ObjectKey,
  schedule: FunctionSchedule,
  due: number,
  now: number,
): Promise<string> {
  const [namespace = "", name = ""] = key.split("/");
  const { payload = "", contentType, path = "/", retries = 0 } = schedule;
  const call = await submitter.submit(queue, {
    namespace,
    name,
    method: "POST",
    path,
    headers: [
      ...(payload === "" ? [] : ["content-type", contentType ?? "application/json"]),
      "x-schedule-name",
      schedule.name,
      "x-schedule-time",
      isoTime(due),
    ],
    body: Buffer.from(payload),
    options: { retries, retentionMs: callBounds.defaultRetentionSeconds * 1_000 },
    // A run that was submitted before a crash is not submitted again after it.
    idempotencyKey: `schedule ${schedule.name} ${due}`,
    schedule: { name: schedule.name, dueAt: isoTime(due) },
    deadlineMs: Math.max(0, due + deadlineMsOf(schedule) - now),
  });
  await keepSchedule(queue, `${key}/${schedule.name}`, due, call);
  return call;
}
