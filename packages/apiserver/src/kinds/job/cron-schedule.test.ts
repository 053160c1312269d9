import { expect, test } from "vitest";
import { scheduleProblem } from "./cron-schedule.ts";

test.each([
  "* * * * *",
  "*/15 8-10 * * MON-FRI",
  "5/20 0,12 ? jan,JUL 0",
  "@daily",
  "@every 1h30m",
  "1-31/2 * * * *",
])("%s is a schedule", (text) => {
  expect(scheduleProblem(text)).toBeUndefined();
});

test.each([
  ["* * * *", "expected exactly 5 fields, found 4: [* * * *]"],
  ["error schedule", "expected exactly 5 fields, found 2: [error schedule]"],
  ["60 * * * *", "end of range (60) above maximum (59): 60"],
  ["* * 0 * *", "beginning of range (0) below minimum (1): 0"],
  ["* * * * 7", "end of range (7) above maximum (6): 7"],
  ["30-10 * * * *", "beginning of range (30) beyond end of range (10): 30-10"],
  ["*/0 * * * *", "step of range should be a positive number: */0"],
  ["1-2-3 * * * *", "too many hyphens: 1-2-3"],
  ["*/1/2 * * * *", "too many slashes: */1/2"],
  ["x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'],
  ["* * L * *", 'failed to parse int from L: strconv.Atoi: parsing "L": invalid syntax'],
  ["@fortnightly", "unrecognized descriptor: @fortnightly"],
])("%s is none: %s", (text, problem) => {
  expect(scheduleProblem(text)).toBe(problem);
});
