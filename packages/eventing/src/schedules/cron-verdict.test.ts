/** The check of cron expressions, which needs no library, has the verdict of the library that runs them. */
import * as fc from "fast-check";
import { cronProblem, timeZoneProblem } from "@spry/function";
import { expect, test } from "vitest";
import { nextRun } from "./next-run.ts";

const now = Date.parse("2026-01-31T12:00:00Z");

/** Whether the library takes it, and it is due one day. */
function isRun(cron: string): boolean {
  try {
    return nextRun(cron, "UTC", now) !== undefined;
  } catch {
    return false;
  }
}

test.each([
  ["0 3 * * *", true],
  [" 0 3 * * * ", true],
  ["@daily", true],
  ["@Hourly", true],
  ["*/5 * * * *", true],
  ["0-59/15 8-18 * * MON-FRI", true],
  ["0 0 1 jan,Jul *", true],
  ["0 0 L * *", true],
  ["0 0 LW * *", true],
  ["0 0 15W * *", true],
  ["0 0 1,L * *", true],
  ["0 0 * * 5#2", true],
  ["0 0 * * FRI#2", true],
  ["0 0 * * 5L", true],
  ["0 0 * * friL", true],
  ["0 0 13 * +FRI", true],
  ["0 0 ? * SUN", true],
  ["0 0 * * 7", true],
  ["0 0 * * fri-sun", true],
  ["0 0 29 2 *", true],
  ["0 0 30 2 1", true],
  ["every day", false],
  ["61 * * * *", false],
  ["* 24 * * *", false],
  ["* * 0 * *", false],
  ["* * 32 * *", false],
  ["* * * 13 *", false],
  ["* * * * 8", false],
  ["* * * *", false],
  ["* * * * * *", false],
  ["", false],
  ["@every 5m", false],
  ["@reboot", false],
  ["daily", false],
  ["5/10 * * * *", false],
  ["*/0 * * * *", false],
  ["*/61 * * * *", false],
  ["10-5 * * * *", false],
  ["1,,2 * * * *", false],
  ["1, * * * *", false],
  ["** * * * *", false],
  ["1-2-3 * * * *", false],
  ["-1 * * * *", false],
  ["1.5 * * * *", false],
  ["٣ * * * *", false],
  ["* * * * MONDAY", false],
  ["* * * * xMON", false],
  ["* * * * 5#6", false],
  ["* * * * 5#", false],
  ["* * * * *#2", false],
  ["* * * * +", false],
  ["* * L-3 * *", false],
  ["* * 1-5W * *", false],
  ["* * LW,1 * *", false],
  ["* * W * *", false],
  ["L * * * *", false],
  ["* * * 5L *", false],
  ["0 0 30 2 *", false],
  ["0 0 31 2,4,6,9,11 *", false],
  ["0 0 31 */2 *", true],
  ["0 0 31 feb-apr/2 *", false],
])("%j runs: %s", (cron, expected) => {
  expect({ cron, isRun: isRun(cron) }).toEqual({ cron, isRun: expected });
  expect({ cron, isGood: cronProblem(cron) === undefined }).toEqual({ cron, isGood: expected });
});

const word = fc.constantFrom(
  "*",
  "0",
  "1",
  "5",
  "7",
  "12",
  "23",
  "24",
  "31",
  "32",
  "59",
  "60",
  "?",
  "L",
  "W",
  "LW",
  "15W",
  "5L",
  "5#2",
  "#",
  "+",
  "MON",
  "sun",
  "Feb",
  "dec",
  "",
  "007",
  "@",
);
const item = fc.oneof(
  { weight: 3, arbitrary: word },
  fc.tuple(word, word).map(([a, b]) => `${a}-${b}`),
  fc.tuple(word, word).map(([a, b]) => `${a}/${b}`),
  fc.tuple(word, word, word).map(([a, b, c]) => `${a}-${b}/${c}`),
  fc.tuple(word, word).map(([a, b]) => `${a}${b}`),
);
const part = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("*", "0", "1-5", "*/2") },
  { weight: 2, arbitrary: item },
  fc.array(item, { minLength: 1, maxLength: 3 }).map((all) => all.join(",")),
);
/** Mostly good fields with one that may be anything: otherwise nearly all would be refused for several reasons. */
const cron = fc
  .tuple(
    fc.nat(4),
    part,
    fc.array(fc.constantFrom("*", "1", "*/2", "1-5"), { minLength: 5, maxLength: 5 }),
  )
  .map(([at, odd, all]) => all.map((each, index) => (index === at ? odd : each)).join(" "));

test("generated expressions get the verdict of the library", () => {
  fc.assert(
    fc.property(cron, (text) => {
      expect({ text, isGood: cronProblem(text) === undefined }).toEqual({
        text,
        isGood: isRun(text),
      });
    }),
    { seed: 3, numRuns: 20_000 },
  );
});

test.each([
  ["UTC", true],
  ["Europe/Berlin", true],
  ["europe/berlin", true],
  ["Etc/GMT+5", true],
  ["CET", true],
  ["Europe/Berln", false],
  ["+01:00", false],
  ["", false],
  ["local", false],
  ["Europe/Berlin ", false],
  ["../etc", false],
])("the time zone %j exists: %s", (timeZone, expected) => {
  const runs = () => nextRun("@daily", timeZone, now) !== undefined;
  expect(timeZoneProblem(timeZone) === undefined).toBe(expected);
  if (expected) expect(runs()).toBe(true);
  else expect(runs).toThrow();
});
