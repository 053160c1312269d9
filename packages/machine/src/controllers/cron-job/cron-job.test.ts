import { createApiServer } from "@spry/apiserver";
import { type CronJob, type Job, KubeClient, ManualClock, resources } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../../testing.ts";
import { startControllers } from "../start-controllers.ts";

const namespace = "default";
const start = Date.parse("2026-01-05T10:00:30Z");

async function startCluster() {
  const clock = new ManualClock(start);
  const server = await createApiServer({ dataDir: ":memory:", clock });
  const client = new KubeClient(server.transport());
  const ending = new AbortController();
  onTestFinished(async () => {
    ending.abort();
    await server.close();
  });
  await startControllers({ client, signal: ending.signal, clock });
  const jobs = async () => {
    const { items } = await client.list(resources.jobs, { namespace });
    return items.map(({ metadata }) => metadata.name ?? "").sort((a, b) => a.localeCompare(b));
  };
  const cronJob = () => client.get(resources.cronJobs, { namespace, name: "tick" });
  /** Time passes, and everything that it wakes has been done. */
  const pass = async (seconds: number) => {
    await clock.advance(seconds * 1000);
    for (let turn = 0; turn < 30; turn++) await clock.advance(0);
  };
  /** The test plays the Pod: it ends the Job. */
  const end = async (name: string, type: "Complete" | "Failed") => {
    const at = new Date(clock.now()).toISOString().replace(/\.\d+Z/, "Z");
    const conditions = [{ type, status: "True", lastTransitionTime: at }];
    const completion = type === "Complete" ? { completionTime: at } : {};
    const status = { startTime: at, conditions, ...completion };
    await client.patch(resources.jobs, { namespace, name }, { status }, { subresource: "status" });
    await pass(0);
  };
  return { client, clock, jobs, cronJob, pass, end };
}

function cronJobOf(spec: object): CronJob {
  const containers = [{ name: "main", image: "example.org/task:1" }];
  const jobTemplate = {
    metadata: { labels: { app: "tick" }, annotations: { note: "kept" } },
    spec: { template: { spec: { restartPolicy: "Never", containers } } },
  };
  return {
    metadata: { namespace, name: "tick" },
    spec: { schedule: "* * * * *", jobTemplate, ...spec },
  };
}

/** The Job of a time of that day. */
const jobAt = (time: string) => `tick-${Date.parse(`2026-01-05T${time}:00Z`) / 60_000}`;

const reasonsOf = async (client: KubeClient) => {
  const { items } = await client.list(resources.events, { namespace });
  return new Set(items.map(({ reason }) => reason));
};

test("a CronJob starts a Job of its template at each of its times", async () => {
  const { client, jobs, cronJob, pass } = await startCluster();
  await client.create(resources.cronJobs, cronJobOf({ timeZone: "Europe/Berlin" }));
  await pass(20);
  expect(await jobs()).toEqual([]);
  await pass(15);
  await eventually(async () => expect(await jobs()).toEqual([jobAt("10:01")]));
  await pass(60);
  await eventually(async () => expect(await jobs()).toEqual([jobAt("10:01"), jobAt("10:02")]));
  const job = await client.get(resources.jobs, { namespace, name: jobAt("10:01") });
  expect(job.metadata.labels).toMatchObject({ app: "tick" });
  expect(job.metadata.annotations).toEqual({
    note: "kept",
    "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-05T11:01:00+01:00",
  });
  expect(job.metadata.ownerReferences).toMatchObject([{ kind: "CronJob", controller: true }]);
  await eventually(async () => {
    const { status } = await cronJob();
    expect(status?.lastScheduleTime).toBe("2026-01-05T10:02:00Z");
    expect(status?.active?.map(({ name }) => name)).toEqual([jobAt("10:01"), jobAt("10:02")]);
  });
});

test.each([
  ["Allow", [jobAt("10:01"), jobAt("10:02")], 2],
  ["Forbid", [jobAt("10:01")], 1],
  ["Replace", [jobAt("10:02")], 1],
])("with %s, a time that comes while a Job runs leads to %j", async (policy, expected, active) => {
  const { client, jobs, cronJob, pass } = await startCluster();
  await client.create(resources.cronJobs, cronJobOf({ concurrencyPolicy: policy }));
  await pass(35);
  await eventually(async () => expect(await jobs()).toHaveLength(1));
  await pass(60);
  await eventually(async () => {
    expect(await jobs()).toEqual(expected);
    expect((await cronJob()).status?.active).toHaveLength(active);
  });
  if (policy === "Forbid")
    await eventually(async () => expect(await reasonsOf(client)).toContain("JobAlreadyActive"));
});

test("a CronJob that is suspended starts nothing, and then only the latest time", async () => {
  const { client, jobs, pass } = await startCluster();
  await client.create(resources.cronJobs, cronJobOf({ suspend: true }));
  await pass(300);
  expect(await jobs()).toEqual([]);
  const target = { namespace, name: "tick" };
  await client.patch(resources.cronJobs, target, { spec: { suspend: false } });
  await pass(1);
  await eventually(async () => expect(await jobs()).toEqual([jobAt("10:05")]));
});

test("a time that is past its starting deadline is left out", async () => {
  const { client, jobs, pass } = await startCluster();
  const spec = { schedule: "0 * * * *", suspend: true, startingDeadlineSeconds: 60 };
  await client.create(resources.cronJobs, cronJobOf(spec));
  await pass(3600 + 120);
  const target = { namespace, name: "tick" };
  await client.patch(resources.cronJobs, target, { spec: { suspend: false } });
  await pass(1);
  expect(await jobs()).toEqual([]);
  await pass(3600 - 120);
  await eventually(async () => expect(await jobs()).toEqual([jobAt("12:00")]));
});

test("keeps as many ended Jobs as its limits say, and when the last one succeeded", async () => {
  const { client, jobs, cronJob, pass, end } = await startCluster();
  const limits = { successfulJobsHistoryLimit: 1, failedJobsHistoryLimit: 1 };
  await client.create(resources.cronJobs, cronJobOf(limits));
  await pass(35);
  for (const [time, type] of [
    ["10:01", "Complete"],
    ["10:02", "Failed"],
    ["10:03", "Complete"],
    ["10:04", "Failed"],
  ] as const) {
    await eventually(async () => expect(await jobs()).toContain(jobAt(time)));
    await end(jobAt(time), type);
    await eventually(async () => expect((await cronJob()).status?.active ?? []).toEqual([]));
    await pass(60);
  }
  await eventually(async () => {
    expect(await jobs()).toEqual([jobAt("10:03"), jobAt("10:04"), jobAt("10:05")]);
  });
  const { status } = await cronJob();
  expect(status?.lastSuccessfulTime).toMatch(/^2026-01-05T10:03:/);
});

test("a Job that is gone is no longer active", async () => {
  const { client, jobs, cronJob, pass } = await startCluster();
  await client.create(resources.cronJobs, cronJobOf({ concurrencyPolicy: "Forbid" }));
  await pass(35);
  await eventually(async () => expect(await jobs()).toHaveLength(1));
  await client.delete(resources.jobs, { namespace, name: jobAt("10:01") });
  await pass(60);
  await eventually(async () => {
    expect(await jobs()).toEqual([jobAt("10:02")]);
    expect((await cronJob()).status?.active).toHaveLength(1);
  });
});

test("a schedule that never comes round starts nothing and says why", async () => {
  const { client, jobs, pass } = await startCluster();
  await client.create(resources.cronJobs, cronJobOf({ schedule: "0 0 31 2 *" }));
  await pass(120);
  await eventually(async () => expect(await reasonsOf(client)).toContain("InvalidSchedule"));
  expect(await jobs()).toEqual([]);
});

test.each([
  [{ timeZone: "Middle/Earth" }, /spec.timeZone: Invalid value/],
  [{ schedule: "every day" }, /expected exactly 5 fields, found 2/],
  [{ schedule: "TZ=UTC 0 0 * * *" }, /use timeZone field instead/],
  [{ concurrencyPolicy: "Perhaps" }, /supported values: "Allow", "Forbid", "Replace"/],
  [{ startingDeadlineSeconds: -1 }, /must be greater than or equal to 0/],
])("%j is refused", async (spec, message) => {
  const { client } = await startCluster();
  await expect(client.create(resources.cronJobs, cronJobOf(spec))).rejects.toThrow(message);
});

test("a new schedule counts from its next time", async () => {
  const { client, jobs, pass } = await startCluster();
  await client.create(resources.cronJobs, cronJobOf({ schedule: "0 0 * * *" }));
  await pass(600);
  const target = { namespace, name: "tick" };
  await client.patch(resources.cronJobs, target, { spec: { schedule: "*/2 * * * *" } });
  await pass(10);
  expect(await jobs()).toEqual([]);
  await pass(110);
  await eventually(async () => expect(await jobs()).toEqual([jobAt("10:12")]));
});

test("a Job that a user made from it is not counted as one of its times", async () => {
  const { client, cronJob, pass } = await startCluster();
  const { metadata, spec } = await client.create(resources.cronJobs, cronJobOf({}));
  // As `kubectl create job --from=cronjob/tick` does.
  const owner = { apiVersion: "batch/v1", kind: "CronJob", name: "tick", uid: metadata.uid };
  await client.create(resources.jobs, {
    metadata: { namespace, name: "now", ownerReferences: [{ ...owner, controller: true }] },
    spec: spec?.jobTemplate.spec,
  } as unknown as Job);
  await pass(5);
  await eventually(async () => expect(await reasonsOf(client)).toContain("UnexpectedJob"));
  expect((await cronJob()).status?.active ?? []).toEqual([]);
});
