import { type FieldError } from "./field-error.ts";
import { type FunctionSpec } from "./types.ts";

/** One of the five fields of a cron expression (crontab(5)). */
interface Field {
  name: string;
  min: number;
  max: number;
  /** How many values there are; a step is at most so large. */
  count: number;
  /** Three letters each; the first one stands for `min`. */
  names?: readonly string[];
}

const days = { name: "day of month", min: 1, max: 31, count: 31 };
const fields: readonly Field[] = [
  { name: "minute", min: 0, max: 59, count: 60 },
  { name: "hour", min: 0, max: 23, count: 24 },
  days,
  {
    name: "month",
    min: 1,
    max: 12,
    count: 12,
    names: "jan feb mar apr may jun jul aug sep oct nov dec".split(" "),
  },
  // 7 is Sunday, too.
  {
    name: "day of week",
    min: 0,
    max: 7,
    count: 7,
    names: "sun mon tue wed thu fri sat".split(" "),
  },
];
const nicknames = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];
const daysOfMonth = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const maxLength = 256;
const example = 'write five fields, as in "0 3 * * *" (each day at 3:00), or one such as @daily';

/** What is wrong with the schedules of a Function: expressions and time zones by which nothing would ever be called. */
export function validateSchedules({ schedules = [] }: FunctionSpec): FieldError[] {
  return schedules.flatMap(({ name, cron, timeZone }, index) => {
    const errors: FieldError[] = [];
    const add = (field: string, problem: string | undefined) => {
      if (problem === undefined) return;
      const message = `schedule ${name}: ${problem}`;
      errors.push({ path: `spec.schedules[${index}].${field}`, message });
    };
    add("cron", cronProblem(cron));
    if (timeZone !== undefined) add("timeZone", timeZoneProblem(timeZone));
    return errors;
  });
}

/**
 * Why a cron expression is not valid, or is never due; undefined if it is good. Five fields, with lists, ranges, steps, names, `?`, and
 * the additions of the library that runs it: `L`, `LW` and `15W` for days of the month, `5L` and `5#2` for days of the week, `+` before
 * these, where both have to match.
 */
export function cronProblem(cron: string): string | undefined {
  const text = cron.trim();
  const problem = (why: string) => `${JSON.stringify(text)} is not a cron expression: ${why}`;
  if (text.length > maxLength) return `the cron expression has more than ${maxLength} characters`;
  if (text.startsWith("@")) {
    if (nicknames.includes(text.toLowerCase())) return undefined;
    return problem(`use one of ${nicknames.join(", ")}, or five fields`);
  }
  const parts = text.match(/\S+/g) ?? [];
  if (parts.length !== 5) return problem(`${parts.length} fields: ${example}`);
  for (const [index, field] of fields.entries()) {
    const part = (parts[index] ?? "").replaceAll("?", "*");
    const why = index === 2 ? dayProblem(part) : fieldProblem(part, field);
    if (why !== undefined) return problem(`${field.name} ${JSON.stringify(parts[index])}: ${why}`);
  }
  return isNever(parts.map((part) => part.replaceAll("?", "*")))
    ? `${JSON.stringify(text)} is never due: no such day of these months exists`
    : undefined;
}

/** Why a name is not that of a time zone (IANA database); undefined if it is. */
export function timeZoneProblem(timeZone: string): string | undefined {
  // Offsets like +01:00 are not names, though the language accepts them too.
  if (/^[A-Za-z][\w+/-]{0,63}$/.test(timeZone)) {
    try {
      Intl.DateTimeFormat("en", { timeZone });
      return undefined;
    } catch {
      // Said below.
    }
  }
  return `${JSON.stringify(timeZone)} is not a time zone: use a name such as Europe/Berlin, or UTC`;
}

function dayProblem(part: string): string | undefined {
  if (part.toUpperCase() === "LW") return undefined;
  const items = part.split(",");
  const others = items.filter((item) => item.toUpperCase() !== "L");
  if (others.length === 0) return undefined;
  for (const item of others) {
    const [, nearest] = /^(\d+)w$/i.exec(item) ?? [];
    const why = nearest === undefined ? itemProblem(item, days) : valueProblem(nearest, days);
    if (why !== undefined) return why;
  }
  return undefined;
}

function fieldProblem(part: string, field: Field): string | undefined {
  const isWeekday = field.max === 7;
  const numbered = withNumbers(part, field);
  if (numbered === undefined) return "a name has to stand alone, such as MON or MON-FRI";
  const plain = isWeekday ? numbered.replace(/^\+/, "") : numbered;
  for (const item of plain.split(",")) {
    // The second Friday, or the last one.
    const [, of] = (isWeekday && /^(.*?)(?:#([1-5l])|l)$/i.exec(item)) || [];
    if (of === "*") return "the days that are counted are missing, as in 5#2";
    const why = itemProblem(of ?? item, field);
    if (why !== undefined) return why;
  }
  return undefined;
}

/** With numbers in place of names; undefined where a name touches other letters or digits. */
function withNumbers(part: string, { names, min }: Field): string | undefined {
  if (!names || part.length < 3) return part;
  let isAlone = true;
  const pattern = new RegExp(`(-?)(${names.join("|")})`, "gi");
  const numbered = part.replace(pattern, (_, dash: string, name: string, at: number) => {
    const before = dash === "" ? part.charAt(at - 1) : "";
    const after = part.charAt(at + dash.length + name.length);
    // An L behind it is the last such day of a month.
    if (/[a-z\d/#]/i.test(before) || /[a-km-z\d]/i.test(after)) isAlone = false;
    const number = names.indexOf(name.toLowerCase()) + min;
    // Behind a dash, Sunday is the end of the week.
    return `${dash}${dash === "-" && name.toLowerCase() === "sun" ? 7 : number}`;
  });
  return isAlone ? numbered : undefined;
}

function itemProblem(item: string, field: Field): string | undefined {
  if (item === "") return "a value is missing";
  if (item === "*") return undefined;
  const [, from = "", to, step] = /^(\*|\d+)(?:-(\d+))?(?:\/(\d+))?$/.exec(item) ?? [];
  if (from === "") return `it is ${field.min} to ${field.max}, *, a range or a step (*/5)`;
  if (step !== undefined) {
    if (from !== "*" && to === undefined) return "a step needs * or a range before it, as in */5";
    const every = Number(step);
    if (every < 1 || every > field.count) return `a step is from 1 to ${field.count}`;
  }
  if (from === "*") return to === undefined ? undefined : "a range begins with a number";
  const low = valueProblem(from, field);
  if (to === undefined || low !== undefined) return low;
  if (Number(from) > Number(to)) return `the range ${from}-${to} ends before it begins`;
  // The library looks at the values that a step comes to, and not at the end of its range.
  const length = Number(to) - Number(from);
  return valueProblem(String(Number(to) - (length % Number(step ?? 1))), field);
}

function valueProblem(text: string, { min, max }: Field): string | undefined {
  const value = Number(text);
  return value >= min && value <= max ? undefined : `${text} is not from ${min} to ${max}`;
}

/** Whether it names only days that its months do not have, as 30 February; other fields always come about. */
function isNever([, , day = "", month = "", weekday]: string[]): boolean {
  if (weekday !== "*" || /[lw*]/i.test(day)) return false;
  const first = Math.min(...day.split(",").map((item) => Number.parseInt(item, 10)));
  const isIn = (index: number) => month.split(",").some((item) => covers(item, index + 1));
  return daysOfMonth.every((count, index) => first > count || !isIn(index));
}

function covers(item: string, month: number): boolean {
  const number = (text: string) => {
    const named = fields[3]?.names?.indexOf(text.toLowerCase()) ?? -1;
    return named >= 0 ? named + 1 : Number(text);
  };
  const [range = "", step = "1"] = item.split("/");
  const [from = "", to = from] = range.split("-");
  const [low, high] = range === "*" ? [1, 12] : [number(from), number(to)];
  return month >= low && month <= high && (month - low) % Number(step) === 0;
}
