/** When schedules are due. Loaded with the first view of schedules. */
import { Cron } from "croner";
import { cronProblem, type FunctionSchedule, timeZoneProblem } from "@spry/function/browser";

/** Undefined for a schedule that is suspended, wrong, or never due again. */
export function nextRunOf(schedule: FunctionSchedule, after = new Date()): Date | undefined {
  const { cron, timeZone = "UTC", suspend } = schedule;
  if (suspend || cronProblem(cron) || timeZoneProblem(timeZone)) return undefined;
  const mode = cron.startsWith("@") ? "auto" : "5-part";
  return new Cron(cron.trim(), { timezone: timeZone, mode }).nextRun(after) ?? undefined;
}
