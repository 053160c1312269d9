/** Builds that fail or wait, through the API server's front door. */
import { annotations, functions } from "@spry/function";
import { resources } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { namespace, TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;
beforeEach(async () => {
  platform = await TestPlatform.start();
});
afterEach(() => platform[Symbol.asyncDispose]());

const source = (code: string) => ({ source: { inline: { source: code } } });

describe("a build that fails", () => {
  test("by the user's mistake says what the installer said, and is not run again until the source changes", async () => {
    await platform.apply("hello", source("bad"));
    const job = await platform.endBuild("hello", {
      exitCode: 1,
      message: "npm error 404 no-such-package",
    });
    const { status } = await platform.condition(
      "hello",
      "BuildReady",
      "JobFailed",
      "npm error 404 no-such-package",
    );
    expect(status).toBe("False");
    await platform.client.delete(
      resources.jobs,
      { namespace, name: job.metadata.name! },
      { propagationPolicy: "Background" },
    );
    await platform.apply("hello", { ...source("bad"), replicas: 2 });
    await platform.clock.advance(3_600_000);
    await platform.settle();
    expect(await platform.children(resources.jobs, "hello")).toEqual([]);
    await platform.condition("hello", "BuildReady", "JobFailed");
    await platform.apply("hello", source("good"));
    await platform.finishBuild("hello");
    await platform.condition("hello", "BuildReady", "JobFinished");
  });

  test("to begin because its Pod may not be made says why", async () => {
    await platform.apply("hello");
    const { metadata } = await platform.buildJob("hello");
    await platform.condition("hello", "BuildReady", "JobCreated");
    const { name = "", uid = "" } = metadata;
    await platform.client.create(resources.events, {
      metadata: { namespace, name: `${name}.1` },
      involvedObject: { apiVersion: "batch/v1", kind: "Job", namespace, name, uid },
      reason: "FailedCreate",
      type: "Warning",
      message: `Error creating: pods "${name}-x7k2p" is forbidden: exceeded quota: small`,
    });
    await platform.clock.advance(10_000);
    const message = `Job ${name} is still in progress: its Pod cannot be created: exceeded quota: small`;
    await platform.condition("hello", "BuildReady", "JobRunning", message);
  });

  test("by its environment is run again, later each time", async () => {
    await platform.apply("hello");
    for (const pauseMs of [5000, 10_000, 20_000]) {
      const job = await platform.endBuild("hello", {
        exitCode: 2,
        message: "registry: ECONNREFUSED",
      });
      await platform.condition(
        "hello",
        "BuildReady",
        "JobFailed",
        "failed, it will be re-run: registry: ECONNREFUSED",
      );
      await platform.clock.advance(pauseMs - 500);
      await platform.settle();
      expect((await platform.children(resources.jobs, "hello"))[0]!.metadata.uid).toBe(
        job.metadata.uid,
      );
      await platform.clock.advance(500);
      await platform.until(
        "another try",
        async () => (await platform.buildJob("hello")).metadata.uid !== job.metadata.uid,
      );
    }
    await platform.finishBuild("hello");
    await platform.condition("hello", "BuildReady", "JobFinished");
    expect((await platform.get("hello")).status!.build).not.toHaveProperty("failures");
  });
});

describe("a new value of the annotation retry-build", () => {
  const retry = (value: string) => ({ annotations: { [annotations.retryBuild]: value } });
  const failure = {
    "the user's mistake": { exitCode: 1, message: "npm error 404 pad" },
    "its environment": { exitCode: 2, message: "npm error ECONNREFUSED" },
  };

  test.each(Object.entries(failure))(
    "tries a build again at once that failed by %s",
    async (_by, end) => {
      await platform.apply("hello");
      const { metadata } = await platform.endBuild("hello", end);
      await platform.condition("hello", "BuildReady", "JobFailed");
      const before = platform.clock.now();
      await platform.apply("hello", {}, retry("1"));
      await platform.until(
        "another try",
        async () => (await platform.buildJob("hello")).metadata.uid !== metadata.uid,
      );
      expect(platform.clock.now() - before).toBeLessThan(1000);
      await platform.finishBuild("hello");
      await platform.condition("hello", "BuildReady", "JobFinished");
    },
  );

  test("tries once, and a restart forgets nothing", async () => {
    await platform.apply("hello");
    const first = await platform.endBuild("hello", failure["the user's mistake"]);
    await platform.condition("hello", "BuildReady", "JobFailed");
    await platform.apply("hello", {}, retry("1"));
    const { metadata } = await platform.until("another try", async () => {
      const job = await platform.buildJob("hello");
      return job.metadata.uid !== first.metadata.uid && job;
    });
    await platform.endBuild("hello", failure["the user's mistake"]);
    await platform.condition("hello", "BuildReady", "JobFailed");
    await platform.stopController();
    platform.startController();
    await platform.settle();
    const jobs = await platform.children(resources.jobs, "hello");
    expect(jobs.filter((job) => job.metadata.uid !== metadata.uid)).toEqual([]);
    expect((await platform.get("hello")).status!.build).toMatchObject({ retriedFor: "1" });
  });

  test("is answered when the failed Job is gone, too, and by a restarted controller", async () => {
    await platform.apply("hello", {}, retry("1"));
    const { metadata } = await platform.endBuild("hello", failure["the user's mistake"]);
    await platform.condition("hello", "BuildReady", "JobFailed");
    await platform.stopController();
    const name = metadata.name!;
    await platform.client.delete(
      resources.jobs,
      { namespace, name },
      { propagationPolicy: "Background" },
    );
    platform.startController();
    await platform.settle();
    expect(await platform.children(resources.jobs, "hello")).toEqual([]);
    await platform.stopController();
    await platform.apply("hello", {}, retry("2"));
    platform.startController();
    await platform.finishBuild("hello");
    await platform.condition("hello", "BuildReady", "JobFinished");
  });

  test("builds nothing where the build did not fail", async () => {
    await platform.apply("hello");
    const { metadata } = await platform.buildJob("hello");
    await platform.finishBuild("hello");
    await platform.condition("hello", "BuildReady", "JobFinished");
    await platform.apply("hello", {}, retry("1"));
    await platform.settle();
    const jobs = await platform.children(resources.jobs, "hello");
    expect(jobs.filter((job) => job.metadata.uid !== metadata.uid)).toEqual([]);
  });
});

describe("a build under way while the platform restarts", () => {
  const registryGone = { exitCode: 2, message: "registry: ECONNREFUSED" };

  test("is run again at once, however often that happens, and does not count as a failure", async () => {
    await platform.apply("hello");
    for (let restarts = 0; restarts < 4; restarts++) {
      const job = await platform.buildJob("hello");
      await platform.stopController();
      await platform.endBuild("hello", registryGone);
      platform.startController();
      await platform.settle();
      expect((await platform.buildJob("hello")).metadata.uid).not.toBe(job.metadata.uid);
      expect((await platform.get("hello")).status!.build).not.toHaveProperty("failures");
    }
  });

  test("waits as before when it fails again after the restart", async () => {
    await platform.apply("hello");
    const before = await platform.buildJob("hello");
    await platform.stopController();
    await platform.endBuild("hello", registryGone);
    platform.startController();
    await platform.settle();
    const again = await platform.buildJob("hello");
    expect(again.metadata.uid).not.toBe(before.metadata.uid);
    await platform.endBuild("hello", registryGone);
    await platform.condition("hello", "BuildReady", "JobFailed", "it will be re-run");
    expect((await platform.get("hello")).status!.build).toMatchObject({ failures: 1 });
    // What has been recorded as a failure is not forgotten by a restart.
    await platform.stopController();
    platform.startController();
    await platform.settle();
    await platform.condition("hello", "BuildReady", "JobFailed", "it will be re-run");
  });
});

describe("five builds at a time", () => {
  test("the others wait, and come in the order in which they came, also after a restart", async () => {
    const all = Array.from({ length: 8 }, (_, index) => `fn-${index}`);
    for (const name of all) {
      await platform.apply(name);
      await platform.condition(
        name,
        "BuildReady",
        all.indexOf(name) < 5 ? "JobCreated" : "JobWaiting",
        all.indexOf(name) < 5 ? "" : "free build slot",
      );
      await platform.clock.advance(1000);
    }
    const building = async () => {
      const jobs = await platform.client.list(resources.jobs, { namespace });
      return jobs.items.map(({ metadata }) => metadata.name!.replace(/-build-.*/, "")).sort();
    };
    expect(await building()).toEqual(all.slice(0, 5));
    await platform.stopController();
    platform.startController();
    await platform.settle();
    await platform.finishBuild("fn-3");
    await platform.buildJob("fn-5");
    await platform.settle();
    expect(await building()).toEqual(all.slice(0, 6));
    await platform.client.delete(functions, { namespace, name: "fn-6" });
    await platform.finishBuild("fn-0");
    await platform.buildJob("fn-7");
  });
});
