/** What a client gets whose Pod ends, or answers nothing, while it has the request. */
import { functions, type Function } from "@spry/function";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, type PodHandler, startBench } from "./testing/bench.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
  await bench.service();
  await bench.fn();
});
afterEach(() => bench.close());

const metadata = { name: "hello", namespace: "default" };
const at = "2026-01-01T00:00:00Z";
const crashed = (message: string): NonNullable<Function["status"]> => ({
  conditions: [
    {
      type: "Running",
      status: "False",
      reason: "DeploymentFailed",
      message,
      lastTransitionTime: at,
    },
  ],
});
const why = "container function: CrashLoopBackOff (exit code 1): the handler has been blocking";

async function running(handler: PodHandler) {
  const pod = await bench.pod(handler);
  await bench.endpoints([pod]);
  await bench.heard();
  return pod;
}

/** As the platform does when a container has ended. */
async function end(): Promise<void> {
  await bench.endpoints([]);
  await bench.client.patch(
    functions,
    metadata,
    { status: crashed(why) },
    { subresource: "status" },
  );
}

test("502 with the diagnosis, for a request that is sent again and finds no Pod", async () => {
  const pod = await running((request) => {
    void end().then(() => request.socket.destroy());
  });
  const answer = await bench.call({ path: "/work" });
  expect(answer).toMatchObject({ status: 502, headers: { "x-spry-reason": "UpstreamFailed" } });
  expect(answer.body).toContain("the process ended while it had the request");
  expect(answer.body).toContain(why);
  expect(pod.seen).toHaveLength(1);
});

test("502 with the diagnosis, for a POST that the Pod had for long, which is sent once", async () => {
  const pod = await running((request) => {
    setTimeout(() => {
      request.socket.destroy();
      setTimeout(() => void end(), 300);
    }, 2_100);
  });
  const answer = await bench.call({ method: "POST", path: "/work" });
  expect(answer).toMatchObject({ status: 502, headers: { "x-spry-reason": "UpstreamFailed" } });
  expect(answer.body).toContain(why);
  expect(pod.seen).toHaveLength(1);
});

test("502 at once, and the cause that is sure, for a POST whose Pod ends at once", async () => {
  await running((request) => request.socket.destroy());
  const begin = performance.now();
  const answer = await bench.call({ method: "POST", path: "/work" });
  expect(answer.body).toContain("the process ended while it had the request");
  expect(answer.status).toBe(502);
  expect(performance.now() - begin).toBeLessThan(1_900);
});

const limited: [name: string, spec: Partial<Function["spec"]>][] = [
  ["timeoutSeconds", { timeoutSeconds: 1 }],
  ["FUNC_TIMEOUT", { env: [{ name: "FUNC_TIMEOUT", value: "1" }] }],
];
test.each(limited)("504 at the Function's limit, by %s", async (_, spec) => {
  await bench.client.patch(functions, metadata, { spec });
  await bench.heard();
  const pod = await running(() => {});
  const begin = performance.now();
  const answer = await bench.call({ method: "POST" });
  expect(answer).toMatchObject({ status: 504, headers: { "x-spry-reason": "UpstreamTimeout" } });
  expect(answer.body).toBe("Function default/hello exceeded its time limit (1 s)\n");
  expect(performance.now() - begin).toBeGreaterThan(1_000);
  expect(pod.seen).toHaveLength(1);
});

test("a request that is sent again has what is left of the time", async () => {
  await bench.client.patch(functions, metadata, { spec: { timeoutSeconds: 2 } });
  await bench.heard();
  let count = 0;
  await running((request) => {
    if (++count === 1) setTimeout(() => request.socket.destroy(), 1_500);
  });
  const begin = performance.now();
  expect(await bench.call()).toMatchObject({ status: 504 });
  expect(performance.now() - begin).toBeLessThan(3_500);
  expect(count).toBe(2);
});
