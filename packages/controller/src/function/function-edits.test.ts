/** What edits of a Function do, through the API server's front door. */
import { resources } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;
beforeEach(async () => {
  platform = await TestPlatform.start();
});
afterEach(() => platform[Symbol.asyncDispose]());

const source = (code: string) => ({ source: { inline: { source: code } } });
const imageOf = async (name: string) =>
  (await platform.deployment(name)).spec?.template.spec?.containers[0]?.image;

describe("an edit", () => {
  test("of the code builds anew while the old image serves", async () => {
    await platform.running("hello");
    await platform.apply("hello", source("two"));
    await platform.buildJob("hello");
    await platform.condition("hello", "BuildReady", "JobCreated");
    expect(await imageOf("hello")).toContain("1".repeat(64));
    expect(
      (await platform.condition("hello", "Running", "DeploymentReady")).observedGeneration,
    ).toBe(1);
    await platform.finishBuild("hello", "2");
    await platform.condition("hello", "Running", "DeploymentUpdated");
    expect(await imageOf("hello")).toContain("2".repeat(64));
    await platform.rollOut("hello");
    const { status } = await platform.until("generation 2 running", async () => {
      const fn = await platform.get("hello");
      return fn.status?.conditions?.[0]?.reason === "DeploymentReady" && fn;
    });
    expect(status).toMatchObject({
      observedGeneration: 2,
      conditions: [{ type: "Running", observedGeneration: 2 }, {}, {}],
    });
  });

  test("during a build replaces it: only the newest is built", async () => {
    await platform.apply("hello", source("one"));
    const first = await platform.buildJob("hello");
    await platform.apply("hello", source("two"));
    const second = await platform.until("the second build", async () => {
      const jobs = await platform.children(resources.jobs, "hello");
      return jobs.length === 1 && jobs[0]?.metadata.name !== first.metadata.name && jobs[0];
    });
    await platform.finishBuild("hello", "2");
    await platform.condition("hello", "BuildReady", "JobFinished", second.metadata.name);
    expect(await imageOf("hello")).toContain("2".repeat(64));
  });

  test.each([
    ["a label", {}, { labels: { a: "b" } }, "updated"],
    ["an annotation", {}, { annotations: { a: "b" } }, "same"],
    ["a variable", { env: [{ name: "A", value: "b" }] }, {}, "updated"],
    ["the resources", { resourceConfiguration: { function: { profile: "XS" } } }, {}, "updated"],
    ["the replicas", { replicas: 3 }, {}, "updated"],
  ])("of %s builds nothing", async (_, spec, metadata, deployment) => {
    await platform.running("hello");
    const before = await platform.deployment("hello");
    await platform.apply("hello", spec, metadata);
    if (deployment === "updated") {
      await platform.until("the Deployment's update", async () => {
        const { resourceVersion } = (await platform.deployment("hello")).metadata;
        return resourceVersion !== before.metadata.resourceVersion;
      });
    }
    await platform.settle();
    expect(await platform.children(resources.jobs, "hello")).toHaveLength(1);
    expect((await platform.condition("hello", "BuildReady", "JobFinished")).status).toBe("True");
    if (deployment === "same")
      expect((await platform.deployment("hello")).metadata.resourceVersion).toBe(
        before.metadata.resourceVersion,
      );
  });

  test("after many others keeps the Jobs of the last few only, and more for some seconds", async () => {
    const jobs = async () => (await platform.children(resources.jobs, "hello")).length;
    for (const digit of ["1", "2", "3", "4", "5", "6", "7"]) {
      await platform.apply("hello", source(`version ${digit}`));
      await platform.finishBuild("hello", digit);
      await platform.until("its image", async () =>
        (await imageOf("hello"))?.includes(digit.repeat(64)),
      );
    }
    await platform.settle();
    expect(await jobs()).toBe(7);
    await platform.until("four Jobs", async () => (await jobs()) === 4);
  });

  test("that is taken back needs no build", async () => {
    await platform.running("hello", source("one"));
    await platform.apply("hello", source("two"));
    await platform.buildJob("hello");
    await platform.apply("hello", source("one"));
    await platform.condition("hello", "BuildReady", "JobFinished");
    await platform.until(
      "the obsolete build's end",
      async () => (await platform.children(resources.jobs, "hello")).length === 1,
    );
    expect(await imageOf("hello")).toContain("1".repeat(64));
  });

  test("back to a version whose finished Job is still there uses its image", async () => {
    await platform.running("hello", source("one"));
    await platform.apply("hello", source("two"));
    await platform.finishBuild("hello", "2");
    await platform.until("image two", async () =>
      (await imageOf("hello"))?.includes("2".repeat(64)),
    );
    await platform.apply("hello", source("one"));
    await platform.until("image one", async () =>
      (await imageOf("hello"))?.includes("1".repeat(64)),
    );
    expect(await platform.children(resources.jobs, "hello")).toHaveLength(2);
  });

  test("to something invalid leaves the running version alone", async () => {
    await platform.running("hello");
    const before = await platform.deployment("hello");
    await platform.apply("hello", { env: [{ name: "2B" }] });
    await platform.condition("hello", "ConfigurationReady", "InvalidFunctionSpec");
    await platform.settle();
    expect((await platform.deployment("hello")).metadata.resourceVersion).toBe(
      before.metadata.resourceVersion,
    );
    await platform.condition("hello", "Running", "DeploymentReady");
  });
});
