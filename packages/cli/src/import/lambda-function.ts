/** One function of AWS Lambda, as serverless.yml and SAM templates have it, as a configuration of `spry.yaml`. */
import { type FunctionSchedule } from "@spry/function";
import { type EnvValue, type ProjectConfig } from "../project/config.ts";
import { Intrinsic } from "./aws-yaml.ts";
import { clean, runtimeLike } from "./counterparts.ts";

export interface LambdaFunction {
  /** As it is called there: `createUser`, `HelloWorldFunction`. */
  name: string;
  handler: string;
  runtime: string | undefined;
  region: string | undefined;
  environment: Record<string, unknown>;
  memory: unknown;
  timeout: unknown;
  /** `rate(5 minutes)` or `cron(…)`. */
  schedules: string[];
  /** Other events that call it than HTTP: their kinds. */
  events: string[];
  remarks: string[];
}

const profiles = [
  ["XS", 128],
  ["S", 256],
  ["M", 512],
  ["L", 1024],
  ["XL", 2048],
] as const;

export function lambdaConfig(fn: LambdaFunction): { config: ProjectConfig; remarks: string[] } {
  const remarks = [...fn.remarks];
  const env: Record<string, EnvValue> = {};
  if (fn.region !== undefined) env["AWS_REGION"] = fn.region;
  for (const [name, value] of Object.entries(fn.environment)) {
    const text = value instanceof Intrinsic ? value.text : String(value ?? "");
    const isKnown =
      !(value instanceof Intrinsic) && typeof value !== "object" && !/\$\{/.test(text);
    env[name] = isKnown ? text : "";
    if (!isKnown)
      remarks.push(
        `the variable ${name} is ${text.includes("[object") ? "computed by AWS" : text} there: write its value, or a Secret`,
      );
  }
  const timeout = Number(fn.timeout);
  if (timeout > 0) env["FUNC_TIMEOUT"] = String(timeout);
  const schedules = fn.schedules.flatMap((text, index) => scheduleOf(text, index, remarks));
  if (schedules.length > 0)
    remarks.push("schedules call it with an event of an HTTP request, and not with that of AWS");
  const profile = profileFor(fn.memory, remarks);
  const kinds = [...new Set(fn.events)];
  if (kinds.length > 0)
    remarks.push(
      `events of ${kinds.join(", ")} have no counterpart: subscribe with a Subscription, whose events arrive as HTTP requests`,
    );
  return {
    remarks,
    config: clean({
      name: functionName(fn.name),
      runtime: runtimeLike(fn.runtime ?? "node", remarks),
      handler: fn.handler,
      dialect: "lambda",
      env,
      ...(profile !== undefined && { profile }),
      schedules,
    }),
  };
}

/** In lower case, with hyphens where words begin. */
function functionName(name: string): string {
  return name
    .replace(/(?<=.)Function$/, "")
    .replaceAll(/([a-z\d])([A-Z])/g, "$1-$2")
    .replaceAll(/[^\dA-Za-z]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .toLowerCase();
}

function profileFor(memory: unknown, remarks: string[]): string | undefined {
  const wanted = Number(memory);
  if (!(wanted > 0)) return undefined;
  const found = profiles.find(([, megabytes]) => wanted <= megabytes);
  if (!found) remarks.push(`${wanted} MB of memory are more than the largest profile has`);
  return found?.[0] ?? "XL";
}

/** Cron of AWS has a year, `?`, and counts days of the week from 1. */
function scheduleOf(text: string, index: number, remarks: string[]): FunctionSchedule[] {
  const cron = cronOfRate(text) ?? cronOfAws(text);
  if (cron !== undefined) return [{ name: index === 0 ? "cron" : `cron-${index + 1}`, cron }];
  remarks.push(`the schedule ${text} has no counterpart: write one below schedules`);
  return [];
}

function cronOfRate(text: string): string | undefined {
  const [, count = "", unit = ""] = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(text.trim()) ?? [];
  const each = count === "1" ? "*" : `*/${count}`;
  if (unit === "minute" && Number(count) < 60) return `${each} * * * *`;
  if (unit === "hour" && Number(count) < 24) return `0 ${each} * * *`;
  return unit === "day" && count === "1" ? "0 0 * * *" : undefined;
}

function cronOfAws(text: string): string | undefined {
  const [, fields = ""] = /^cron\((.+)\)$/.exec(text.trim()) ?? [];
  const [minute, hour, day, month, weekday, year, ...more] = fields.split(/\s+/);
  if (year !== "*" || more.length > 0) return undefined;
  const days = weekday?.replaceAll(/\d/g, (digit) => String((Number(digit) + 6) % 7));
  const cron = [minute, hour, day, month, days].join(" ").replaceAll("?", "*");
  return /[LW#]/.test(cron.replaceAll(/[A-Z]{3}/gi, "")) ? undefined : cron;
}
