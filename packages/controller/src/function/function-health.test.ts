/** What GitOps tools see of a Function: kstatus' health, from its creation on (https://pkg.go.dev/sigs.k8s.io/cli-utils/pkg/kstatus/status). */
import { type Function, functions } from "@spry/function";
import { afterEach, beforeEach, expect, test } from "vitest";
import { TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;
beforeEach(async () => {
  platform = await TestPlatform.start();
});
afterEach(() => platform[Symbol.asyncDispose]());

type Health = "Current" | "InProgress" | "Failed";

/** kstatus' verdict on a custom resource: the generation first, then the two conditions, then there is nothing to wait for. */
function healthOf({ metadata, status }: Function): Health {
  const seen = status?.observedGeneration;
  if (seen !== undefined && seen !== metadata.generation) return "InProgress";
  const has = (type: string) =>
    status?.conditions?.some((each) => each.type === type && each.status === "True");
  if (has("Reconciling")) return "InProgress";
  return has("Stalled") ? "Failed" : "Current";
}

const becomes = (health: Health, name = "hello") =>
  platform.until(`${name} ${health}`, async () => {
    const fn = await platform.get(name);
    return healthOf(fn) === health && fn;
  });

const source = (code: string) => ({ source: { inline: { source: code } } });

test("a Function that no pass has looked at is in progress", async () => {
  await platform.apply("other");
  const { spec } = await platform.get("other");
  const metadata = { name: "hello", namespace: "default" };
  expect(healthOf(await platform.client.create(functions, { metadata, spec }))).toBe("InProgress");
});

test("a Function that is not built yet is in progress, and current when it runs", async () => {
  const seen: Health[] = [];
  await platform.apply("hello");
  await platform.condition("hello", "BuildReady", "JobCreated");
  seen.push(healthOf(await platform.get("hello")));
  await platform.finishBuild("hello");
  await platform.condition("hello", "Running", "DeploymentCreated");
  seen.push(healthOf(await platform.get("hello")));
  expect(seen).toEqual(["InProgress", "InProgress"]);
  await platform.rollOut("hello");
  const { status } = await becomes("Current");
  expect(status?.conditions?.map(({ type }) => type)).toEqual([
    "Running",
    "BuildReady",
    "ConfigurationReady",
  ]);
});

test("it says why it is on its way, in the words of the condition that it waits for", async () => {
  await platform.apply("hello");
  const { reason, message } = await platform.condition("hello", "BuildReady", "JobCreated");
  const { status, metadata } = await platform.get("hello");
  expect(status?.conditions?.at(-1)).toMatchObject({
    type: "Reconciling",
    status: "True",
    reason,
    message,
    observedGeneration: metadata.generation,
  });
});

test("a mistake in the spec fails it, and its correction brings it back", async () => {
  await platform.apply("hello", { ...source("x"), env: [{ name: "2B", value: "x" }] });
  const { status } = await becomes("Failed");
  expect(status?.conditions?.at(-1)).toMatchObject({
    type: "Stalled",
    reason: "InvalidFunctionSpec",
  });
  await platform.apply("hello", source("x"));
  await becomes("InProgress");
  await platform.finishBuild("hello");
  await platform.rollOut("hello");
  await becomes("Current");
});

test("a build that a person must mend fails it; the version before goes on running", async () => {
  await platform.running("hello");
  await platform.apply("hello", source("broken"));
  await platform.endBuild("hello", { exitCode: 1, message: "no such package" });
  const { status } = await becomes("Failed");
  expect(status?.conditions?.at(-1)).toMatchObject({ type: "Stalled", reason: "JobFailed" });
  expect(status?.conditions?.find(({ type }) => type === "Running")?.status).toBe("True");
});

test("an edit and a change of replicas end as current again", async () => {
  await platform.running("hello");
  await platform.apply("hello", source("second"));
  await platform.finishBuild("hello", "2");
  await platform.rollOut("hello");
  await becomes("Current");
  await platform.apply("hello", { ...source("second"), replicas: 2 });
  await platform.condition("hello", "Running", "DeploymentUpdated");
  expect(healthOf(await platform.get("hello"))).toBe("InProgress");
  await platform.rollOut("hello");
  await becomes("Current");
});
