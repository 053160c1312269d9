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
  /** How often runs have begun again because the machine's clock was set back. */
  begun?: number;
}

/** Of one Function; further ones are left out. */
export const maxSchedules = 100;

export const schedulesOf = (fn: Pick<Function, "spec"> | undefined): FunctionSchedule[] =>
  (fn?.spec.schedules ?? []).slice(0, maxSchedules);

export const scheduleBucket = "schedules";

export const isoTime = (ms: number): string => new Date(ms).toISOString();

export function keepSchedule(queue: Queue, id: string, kept: KeptSchedule): Promise<void> {
  return queue.put({ bucket: scheduleBucket, key: id, value: JSON.stringify(kept) });
}

export async function keptSchedule(queue: Queue, id: string): Promise<KeptSchedule | undefined> {
  const text = await queue.get(scheduleBucket, id);
  return text === undefined ? undefined : (JSON.parse(text) as KeptSchedule);
}

const defaultDeadlineSeconds = 300;

/** How late a run may start. */
export const deadlineMsOf = ({
  startingDeadlineSeconds = defaultDeadlineSeconds,
}: FunctionSchedule): number => startingDeadlineSeconds * 1_000;

/**
 * Submits the call of a run that is due at `due` (ms), and keeps `kept` with it. The consumer of the Function's calls exists. Resolves
 * with the call's id.
 */
export async function submitRun(
  { queue, submitter }: { queue: Queue; submitter: CallSubmitter },
  key: ObjectKey,
  schedule: FunctionSchedule,
  { due, now, kept }: { due: number; now: number; kept: KeptSchedule },
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
    idempotencyKey: ["schedule", schedule.name, due, ...(kept.begun ? [kept.begun] : [])].join(" "),
    schedule: { name: schedule.name, dueAt: isoTime(due) },
    deadlineMs: Math.max(0, due + deadlineMsOf(schedule) - now),
  });
  await keepSchedule(queue, `${key}/${schedule.name}`, { ...kept, lastCall: call });
  return call;
}
