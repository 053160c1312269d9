import { describe, expect, test } from "vitest";
import { localTimestamp } from "./local-timestamp.ts";
import { isTimeZone, parseSchedule } from "./schedule.ts";

const nextOf = (text: string, after: string, timeZone?: string) => {
  const next = parseSchedule(text, timeZone).next(Date.parse(after));
  return next === undefined ? undefined : new Date(next).toISOString().replace(".000Z", "Z");
};

describe("a schedule", () => {
  test.each([
    ["* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"],
    ["* * * * *", "2026-01-01T00:00:30Z", "2026-01-01T00:01:00Z"],
    ["*/15 8-10 * * MON-FRI", "2026-01-02T10:45:00Z", "2026-01-05T08:00:00Z"],
    ["5/20 * * * *", "2026-01-01T00:25:00Z", "2026-01-01T00:45:00Z"],
    ["0 12 ? * 0", "2026-01-01T00:00:00Z", "2026-01-04T12:00:00Z"],
    ["0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"],
    ["0 0 13 * fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"],
    ["0 0 */2 * fri", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"],
    ["0 0 1 jan,jul *", "2026-01-01T00:00:00Z", "2026-07-01T00:00:00Z"],
    ["@hourly", "2026-01-01T00:30:00Z", "2026-01-01T01:00:00Z"],
    ["@daily", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"],
    ["@weekly", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"],
    ["@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"],
    ["@every 1h30m", "2026-01-01T00:00:10Z", "2026-01-01T01:30:10Z"],
    ["@every 10ms", "2026-01-01T00:00:10Z", "2026-01-01T00:00:11Z"],
    ["59 23 31 2 *", "2026-01-01T00:00:00Z", undefined],
  ])("%s after %s is due at %s", (text, after, expected) => {
    expect(nextOf(text, after)).toBe(expected);
  });

  test.each([
    ["0 9 * * *", "Europe/Berlin", "2026-01-01T12:00:00Z", "2026-01-02T08:00:00Z"],
    ["0 9 * * *", "Europe/Berlin", "2026-07-01T12:00:00Z", "2026-07-02T07:00:00Z"],
    ["30 5 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"],
    // The clocks are set forward on 29 March: there is no half past two, so that day has no run.
    ["30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"],
    ["0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z"],
    // And back on 25 October: every hour is every hour.
    ["0 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"],
  ])("%s in %s after %s is due at %s", (text, timeZone, after, expected) => {
    expect(nextOf(text, after, timeZone)).toBe(expected);
  });

  test.each([
    ["", /expected exactly 5 fields, found/],
    ["* * * *", /expected exactly 5 fields, found 4/],
    ["* * * * * *", /expected exactly 5 fields, found 6/],
    ["60 * * * *", /./],
    ["* * * * 9", /./],
    ["5-3 * * * *", /./],
    ["*/0 * * * *", /./],
    ["* * L * *", /failed to parse field: L/],
    ["* * * * mon#2", /failed to parse field/],
    ["jan * * * *", /failed to parse int from jan/],
    ["TZ=UTC * * * * *", /./],
    ["@fortnightly", /unrecognized descriptor: @fortnightly/],
    ["@every soon", /failed to parse duration @every soon/],
    ["1,".repeat(200), /too long/],
  ])("%s is none", (text, message) => {
    expect(() => parseSchedule(text)).toThrow(message);
  });

  test.each([
    ["Europe/Berlin", true],
    ["Etc/UTC", true],
    ["UTC", true],
    ["Middle/Earth", false],
    ["+01:00", false],
    ["Local", false],
    ["", false],
  ])("the time zone %s is known: %s", (timeZone, known) => {
    expect(isTimeZone(timeZone)).toBe(known);
  });

  test.each([
    [undefined, "2026-07-01T10:00:00Z"],
    ["Europe/Berlin", "2026-07-01T12:00:00+02:00"],
    ["America/St_Johns", "2026-07-01T07:30:00-02:30"],
  ])("a time is written as clocks in %s show it: %s", (timeZone, expected) => {
    expect(localTimestamp(Date.parse("2026-07-01T10:00:00Z"), timeZone)).toBe(expected);
  });
});
