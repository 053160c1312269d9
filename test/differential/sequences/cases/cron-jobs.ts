import { type CronJob, resources } from "@spry/kube";
import { type Sequence, type Step, step } from "../sequence.ts";
import { job } from "./workloads.ts";

/** The real schedule has no clock that could be turned: the next minute has to come. */
const minuteMs = 75_000;
const quietMs = 2500;

const cronJob = (spec: object = {}) => ({
  metadata: { name: "tick" },
  spec: { schedule: "* * * * *", jobTemplate: { spec: job().spec }, ...spec },
});
const create = (spec: object = {}): Step =>
  step("create", (scene) => scene.create(resources.cronJobs, cronJob(spec)));
/** With a past that both sides share, so that something is due at once. */
const overdue = (spec: object, agoMs: number): Step =>
  step("create, and let time have passed", async (scene) => {
    const { metadata } = await scene.create(
      resources.cronJobs,
      cronJob({ suspend: true, ...spec }),
    );
    const at = new Date(Math.floor((Date.now() - agoMs) / 60_000) * 60_000);
    const lastScheduleTime = at.toISOString().replace(".000Z", "Z");
    await scene.patch(
      resources.cronJobs,
      metadata.name ?? "",
      { status: { lastScheduleTime } },
      "status",
    );
    await scene.patch(resources.cronJobs, metadata.name ?? "", { spec: { suspend: false } });
  });
const succeed = (count: number): Step => step(`${count} succeed`, (scene) => scene.succeed(count));
const fail = (count: number): Step => step(`${count} fail`, (scene) => scene.fail(count));
/** As if the last time had been minutes ago once more. */
const again = (agoMs: number): Step =>
  step("time has passed again", async (scene) => {
    const at = new Date(Math.floor((Date.now() - agoMs) / 60_000) * 60_000);
    const lastScheduleTime = at.toISOString().replace(".000Z", "Z");
    await scene.patch(resources.cronJobs, "tick", { status: { lastScheduleTime } }, "status");
  });
const hourly = { schedule: "0 * * * *" };
const hourMs = 3_600_000;

export const cronJobs: Sequence[] = [
  {
    name: "CronJob of every minute",
    quietMs,
    steps: [
      create({ suspend: true }),
      step("resume, and the minute comes", async (scene) => {
        await scene.patch(resources.cronJobs, "tick", { spec: { suspend: false } });
        await scene.until(
          "a Job",
          async () =>
            (await scene.get<CronJob>(resources.cronJobs, "tick")).status?.lastScheduleTime !==
            undefined,
          minuteMs,
        );
        await scene.patch(resources.cronJobs, "tick", { spec: { suspend: true } });
      }),
      succeed(1),
    ],
  },
  { name: "CronJob that is overdue", quietMs, steps: [overdue(hourly, 2 * hourMs), succeed(1)] },
  {
    name: "CronJob that fails",
    quietMs,
    steps: [
      overdue({ ...hourly, jobTemplate: { spec: job({ backoffLimit: 0 }).spec } }, 2 * hourMs),
      fail(1),
    ],
  },
  { name: "CronJob that is suspended", quietMs, steps: [create({ suspend: true })] },
  {
    name: "CronJob that has missed its deadline",
    quietMs,
    steps: [overdue({ ...hourly, schedule: "0 3 1 1 *", startingDeadlineSeconds: 30 }, 2 * hourMs)],
  },
  {
    name: "CronJob with a time zone that is none",
    quietMs,
    steps: [
      step("create", (scene) =>
        scene.create(resources.cronJobs, cronJob({ ...hourly, timeZone: "Europe/Berlin" })),
      ),
    ],
  },
  {
    name: "CronJob in another time zone",
    quietMs,
    steps: [overdue({ ...hourly, timeZone: "Asia/Kolkata" }, 3 * hourMs), succeed(1)],
  },
  {
    name: "CronJob that forbids a second run",
    quietMs,
    steps: [overdue({ ...hourly, concurrencyPolicy: "Forbid" }, 2 * hourMs), again(3 * hourMs)],
  },
  {
    name: "CronJob that replaces its run",
    quietMs,
    steps: [overdue({ ...hourly, concurrencyPolicy: "Replace" }, 2 * hourMs)],
  },
  {
    name: "CronJob that keeps no history",
    // The Job is gone before or after its end has been written down.
    chance: /^event CronJob\/tick Normal MissingJob /,
    quietMs,
    steps: [overdue({ ...hourly, successfulJobsHistoryLimit: 0 }, 2 * hourMs), succeed(1)],
  },
  {
    name: "CronJob whose labels are handed down",
    quietMs,
    steps: [
      overdue(
        {
          ...hourly,
          jobTemplate: {
            metadata: { labels: { of: "it" }, annotations: { note: "x" } },
            spec: job().spec,
          },
        },
        2 * hourMs,
      ),
    ],
  },
  {
    name: "CronJob whose run is deleted",
    quietMs,
    steps: [
      overdue(hourly, 2 * hourMs),
      step("delete its Job", async (scene) => {
        const { items } = await scene.client.list(resources.jobs, { namespace: scene.namespace });
        await scene.delete(resources.jobs, items[0]?.metadata.name ?? "");
      }),
    ],
  },
  {
    name: "CronJob that is deleted",
    quietMs,
    steps: [
      overdue(hourly, 2 * hourMs),
      step("delete", (scene) => scene.delete(resources.cronJobs, "tick")),
    ],
  },
];
