/** A field of a schedule: its numbers, and names for them. */
interface Bounds {
  min: number;
  max: number;
  names?: readonly string[];
}

const months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const fieldBounds: readonly Bounds[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: months },
  { min: 0, max: 6, names: days },
];
const descriptor = /^@(?:yearly|annually|monthly|weekly|daily|midnight|hourly)$/;
const duration = /^[+]?(?:\d+(?:\.\d*)?(?:ns|us|µs|ms|s|m|h))+$/;

/**
 * What is wrong with a CronJob's schedule, in the words of the parser that Kubernetes uses
 * (`robfig/cron`, standard parser); undefined when nothing is.
 */
export function scheduleProblem(text: string): string | undefined {
  try {
    checkSchedule(text);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

function checkSchedule(text: string): void {
  if (text.startsWith("@every ")) {
    const given = text.slice("@every ".length);
    if (duration.test(given)) return;
    const cause = `time: invalid duration ${JSON.stringify(given)}`;
    throw new Error(`failed to parse duration ${text}: ${cause}`);
  }
  if (text.startsWith("@")) {
    if (descriptor.test(text)) return;
    throw new Error(`unrecognized descriptor: ${text}`);
  }
  const fields = text.split(/\s+/).filter(Boolean);
  if (fields.length !== fieldBounds.length)
    throw new Error(`expected exactly 5 fields, found ${fields.length}: [${fields.join(" ")}]`);
  for (const [index, bounds] of fieldBounds.entries())
    for (const range of fields[index]?.split(",").filter(Boolean) ?? []) checkRange(range, bounds);
}

function checkRange(range: string, bounds: Bounds): void {
  const [span = "", step, ...moreSteps] = range.split("/");
  const [low = "", high, ...moreHyphens] = span.split("-");
  const isAny = low === "*" || low === "?";
  let start = bounds.min;
  let end = bounds.max;
  if (!isAny) {
    start = numberOf(low, bounds.names);
    if (moreHyphens.length > 0) throw new Error(`too many hyphens: ${range}`);
    if (high !== undefined) end = numberOf(high, bounds.names);
    // "5/20" begins there and goes to the end.
    else if (step === undefined) end = start;
  }
  if (moreSteps.length > 0) throw new Error(`too many slashes: ${range}`);
  const by = step === undefined ? 1 : numberOf(step);
  if (start < bounds.min)
    throw new Error(`beginning of range (${start}) below minimum (${bounds.min}): ${range}`);
  if (end > bounds.max)
    throw new Error(`end of range (${end}) above maximum (${bounds.max}): ${range}`);
  if (start > end)
    throw new Error(`beginning of range (${start}) beyond end of range (${end}): ${range}`);
  if (by === 0) throw new Error(`step of range should be a positive number: ${range}`);
}

function numberOf(text: string, names?: readonly string[]): number {
  const place = names?.indexOf(text.toLowerCase()) ?? -1;
  // Months count from one, days of the week from zero.
  if (place >= 0) return names === months ? place + 1 : place;
  if (/^\+?\d{1,9}$/.test(text)) return Number(text);
  const cause = `strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`;
  throw new Error(`failed to parse int from ${text}: ${cause}`);
}
