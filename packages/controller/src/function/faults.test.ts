/** What goes wrong between controller and API server must not show in the result. */
import { resources, type Transport } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;
beforeEach(async () => {
  platform = await TestPlatform.start();
});
afterEach(() => platform[Symbol.asyncDispose]());

const isWrite = (request: Request) =>
  request.method !== "GET" && !new URL(request.url).pathname.endsWith("/events");

function answer(code: number, reason: string): Response {
  const status = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    code,
    reason,
    message: reason,
  };
  return Response.json(status, { status: code });
}

/** Once for each thing that is written, so that every step goes through it. */
function oncePerTarget(fail: (request: Request, pass: Transport) => Promise<Response>) {
  const seen = new Set<string>();
  return (request: Request, pass: Transport) => {
    const target = `${request.method} ${new URL(request.url).pathname}`;
    if (!isWrite(request) || seen.has(target)) return pass(request);
    seen.add(target);
    return fail(request, pass);
  };
}

async function expectHelloRuns(): Promise<void> {
  await platform.finishBuild("hello");
  await platform.deployment("hello");
  await platform.until(
    "the Service",
    async () => (await platform.children(resources.services, "hello"))[0],
  );
  await platform.rollOut("hello");
  await platform.condition("hello", "Running", "DeploymentReady");
  expect(await platform.children(resources.jobs, "hello")).toHaveLength(1);
  expect(await platform.children(resources.deployments, "hello")).toHaveLength(1);
}

describe("a Function runs, from one build, although each write", () => {
  test.each<[string, (request: Request, pass: Transport) => Promise<Response>]>([
    ["is refused once", async () => answer(500, "InternalError")],
    ["meets a conflict once", async () => answer(409, "Conflict")],
    ["is throttled once", async () => answer(429, "TooManyRequests")],
    ["never arrives at first", () => Promise.reject(new Error("socket hang up"))],
    [
      "is done, but its answer is lost once",
      async (request, pass) => {
        await pass(request);
        throw new Error("socket hang up");
      },
    ],
  ])("%s", async (_, fail) => {
    platform.fault = oncePerTarget(fail);
    await platform.apply("hello");
    await expectHelloRuns();
  });
});

describe("a controller that dies", () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])(
    "after its write number %i leaves the next one a state to go on from",
    async (last) => {
      let written = 0;
      const dead = () => Promise.reject(new Error("the controller is dead"));
      platform.fault = (request, pass) => {
        if (written >= last) return dead();
        if (isWrite(request)) written++;
        return pass(request);
      };
      await platform.apply("hello");
      await platform.settle();
      if ((await platform.children(resources.jobs, "hello")).length > 0)
        await platform.finishBuild("hello");
      await platform.settle();
      await platform.stopController();
      platform.fault = undefined;
      platform.startController();
      const [job] = await platform.until("the Job", async () => {
        const jobs = await platform.children(resources.jobs, "hello");
        return jobs.length === 1 && jobs;
      });
      if (!job!.status?.conditions) await platform.finishBuild("hello");
      await platform.deployment("hello");
      await platform.rollOut("hello");
      await platform.condition("hello", "Running", "DeploymentReady");
      expect(await platform.children(resources.jobs, "hello")).toHaveLength(1);
    },
  );
});

test("a status that cannot be written either does not hide what went wrong before", async () => {
  platform.fault = async (request, pass) => {
    const { pathname } = new URL(request.url);
    if (pathname.endsWith("/hello/status")) return answer(500, "no status today");
    if (isWrite(request) && pathname.includes("/configmaps"))
      return answer(500, "no ConfigMap today");
    return pass(request);
  };
  await platform.apply("hello");
  await platform.until("the failed pass", async () => platform.troubles.length > 0);
  expect(platform.troubles[0]).toContain("no ConfigMap today");
  platform.fault = undefined;
  await expectHelloRuns();
});
