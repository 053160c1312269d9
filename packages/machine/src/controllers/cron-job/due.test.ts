import { type CronJob } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { dueAt, msUntilNext } from "./due.ts";
import { parseSchedule } from "./schedule.ts";

interface Row {
  schedule: string;
  created?: string;
  last?: string;
  deadline?: number;
  now: string;
}

const day = (time: string) => Date.parse(`2026-01-05T${time}Z`);

function cronJobOf({ schedule, created = "00:00:00", last, deadline }: Row): CronJob {
  const text = (time: string) => `2026-01-05T${time}Z`;
  return {
    metadata: { name: "x", namespace: "default", creationTimestamp: text(created) },
    spec: { schedule, startingDeadlineSeconds: deadline, jobTemplate: {} },
    status: last ? { lastScheduleTime: text(last) } : {},
  } as unknown as CronJob;
}

const hourly = "0 * * * *";

describe("of a schedule is due", () => {
  test.each<[string, Row, string | undefined, boolean?]>([
    [
      "nothing before its first time",
      { schedule: hourly, created: "00:10:00", now: "00:59:59" },
      undefined,
    ],
    [
      "its first time when it has come",
      { schedule: hourly, created: "00:10:00", now: "01:00:00" },
      "01:00:00",
    ],
    ["nothing that was served", { schedule: hourly, last: "01:00:00", now: "01:59:59" }, undefined],
    [
      "the latest of several missed",
      { schedule: hourly, last: "01:00:00", now: "04:30:00" },
      "04:00:00",
    ],
    [
      "the latest of very many, with a word",
      { schedule: "* * * * *", now: "05:00:30" },
      "05:00:00",
      true,
    ],
    [
      "nothing older than the deadline",
      { schedule: hourly, last: "01:00:00", deadline: 600, now: "02:11:00" },
      undefined,
    ],
    [
      "what is within the deadline",
      { schedule: hourly, last: "01:00:00", deadline: 600, now: "02:09:00" },
      "02:00:00",
    ],
    [
      "the latest of an uneven schedule",
      { schedule: "30 6-16/4 * * 1-5", now: "11:00:00" },
      "10:30:00",
    ],
    [
      "the latest of a fixed delay",
      { schedule: "@every 25m", last: "00:00:00", now: "01:00:00" },
      "00:50:00",
    ],
  ])("%s", (_what, row, expected, tooMany = false) => {
    const due = dueAt(cronJobOf(row), parseSchedule(row.schedule), day(row.now));
    expect(due.at).toBe(expected === undefined ? undefined : day(expected));
    expect(due.tooMany).toBe(tooMany);
  });

  test("an error when it never comes round", () => {
    const row = { schedule: "0 0 31 2 *", now: "00:00:00" };
    expect(() => dueAt(cronJobOf(row), parseSchedule(row.schedule), day(row.now))).toThrow(
      /less than 1 second/,
    );
  });

  test.each<[Row, string]>([
    [{ schedule: hourly, created: "00:10:00", now: "00:20:00" }, "01:00:00"],
    [{ schedule: hourly, last: "01:00:00", now: "01:00:01" }, "02:00:00"],
    [{ schedule: hourly, last: "01:00:00", now: "04:30:00" }, "05:00:00"],
  ])("%o next at %s", (row, expected) => {
    const wait = msUntilNext(cronJobOf(row), parseSchedule(row.schedule), day(row.now));
    expect(wait).toBe(day(expected) - day(row.now) + 100);
  });
});
