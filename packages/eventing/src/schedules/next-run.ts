import { Cron } from "croner";

const maxLength = 256;

/**
 * The first time after `after` (milliseconds since the epoch) at which a schedule is due; undefined when there is none.
 * `cron`: five fields or a nickname such as `@daily`; `timeZone`: a name of the IANA database.
 * @throws Error that names the problem
 */
export function nextRun(cron: string, timeZone: string, after: number): number | undefined {
  if (cron.length > maxLength) throw new Error("the schedule is too long");
  if (!/^[A-Za-z][\w+/-]{0,63}$/.test(timeZone)) throw new Error("not a valid time zone");
  return patternOf(cron, timeZone).nextRun(new Date(after))?.getTime();
}

function patternOf(cron: string, timezone: string): Cron {
  try {
    return new Cron(cron.trim(), { timezone, mode: cron.startsWith("@") ? "auto" : "5-part" });
  } catch (error) {
    throw new Error(`not a valid schedule: ${String(error)}`, { cause: error });
  }
}
