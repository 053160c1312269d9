import { Cron } from "croner";

/** When a CronJob is due. Times are milliseconds since the epoch. */
export interface Schedule {
  /** The first time after this one; undefined when there is none (31 February). */
  next(after: number): number | undefined;
}

const maxScheduleLength = 256;
const nicknames = /^@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)$/i;
const name = "[A-Za-z]{3}";
const value = `(?:\\d{1,2}|${name})`;
const item = `(?:[*?]|${value}(?:-${value})?)(?:/\\d{1,2})?`;
const fieldPattern = new RegExp(`^${item}(?:,${item})*$`);
const months = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec";
const days = "sun|mon|tue|wed|thu|fri|sat";
/** Minute, hour, day of month, month, day of week. */
const namesOfField = [undefined, undefined, undefined, months, days];
/** Times that a day does not have (its clocks are set forward) are passed over, but not for ever. */
const maxSkips = 1_000;

/**
 * Reads `spec.schedule`: five fields, a nickname such as `@daily`, or `@every 1h30m` (the format of
 * the `robfig/cron` library, standard parser). Throws with what is wrong.
 */
export function parseSchedule(text: string, timeZone = "UTC"): Schedule {
  const trimmed = text.trim();
  if (trimmed.length > maxScheduleLength) throw new Error("schedule is too long");
  const every = /^@every\s+(.*)$/i.exec(trimmed);
  if (every) return fixedDelay(parseDuration(every[1] ?? ""));
  if (trimmed.startsWith("@")) {
    if (!nicknames.test(trimmed)) throw new Error(`unrecognized descriptor: ${trimmed}`);
    return ofPattern(trimmed, timeZone, false);
  }
  const fields = trimmed.split(/\s+/);
  if (fields.length !== 5)
    throw new Error(`expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`);
  for (const [index, field] of fields.entries()) assertField(field, namesOfField[index]);
  const [minute, hour, day = "", month, weekday = ""] = fields.map((field) =>
    field.replaceAll("?", "*"),
  );
  // Either of the two days is enough, unless one of them says nothing.
  const both = [day, weekday].some((field) => /(?:^|,)\*(?:\/1)?(?:,|$)/.test(field));
  return ofPattern([minute, hour, day, month, weekday].join(" "), timeZone, both);
}

/** Whether this machine knows the time zone, by its name in the IANA database. */
export function isTimeZone(timeZone: string): boolean {
  // Offsets like +01:00 are not names, though the language accepts them too.
  if (!/^[A-Za-z]/.test(timeZone) || timeZone.toLowerCase() === "local") return false;
  try {
    return Intl.DateTimeFormat("en", { timeZone }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

function assertField(field: string, names: string | undefined): void {
  if (!fieldPattern.test(field)) throw new Error(`failed to parse field: ${field}`);
  for (const [word] of field.matchAll(/[A-Za-z]+/g))
    if (!names?.split("|").includes(word.toLowerCase()))
      throw new Error(`failed to parse int from ${word}`);
}

function ofPattern(pattern: string, timezone: string, domAndDow: boolean): Schedule {
  const cron = new Cron(pattern, {
    timezone,
    domAndDow,
    mode: "5-part",
    sloppyRanges: true,
    paused: true,
  });
  return {
    next(after) {
      let at = cron.nextRun(new Date(after));
      // An hour that the day lacks is moved by the library; Kubernetes leaves that run out.
      for (let skips = 0; at && !cron.match(at) && skips < maxSkips; skips++) at = cron.nextRun(at);
      return at?.getTime();
    },
  };
}

/** Counted from whatever was last; in whole seconds. */
function fixedDelay(ms: number): Schedule {
  return { next: (after) => Math.floor(after / 1000) * 1000 + ms };
}

const units: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1e3,
  m: 6e4,
  h: 3.6e6,
};

/** Go's `time.ParseDuration`, such as `1h30m`; at least a second. */
function parseDuration(text: string): number {
  if (!/^(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+$/.test(text))
    throw new Error(`failed to parse duration @every ${text}`);
  let ms = 0;
  for (const [, number, unit = ""] of text.matchAll(/(\d+(?:\.\d*)?)(ns|us|µs|ms|s|m|h)/g))
    ms += Number(number) * (units[unit] ?? 0);
  return Math.max(1000, Math.floor(ms / 1000) * 1000);
}
