/** The line of the log about a request that a Pod had and did not answer. */
import { silentLogger } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, type PodHandler, startBench } from "./testing/bench.ts";

let bench: Bench;
const lines: Record<string, unknown>[] = [];
const log = {
  ...silentLogger,
  info: (fields: object, message: string) => lines.push({ ...fields, message }),
  child: () => log,
};

beforeEach(async () => {
  lines.length = 0;
  bench = await startBench({ log, upstreamTimeoutMs: 200 });
  await bench.service();
});
afterEach(() => bench.close());

async function running(handler: PodHandler): Promise<string> {
  const pod = await bench.pod(handler);
  await bench.endpoints([pod]);
  await bench.heard();
  return `${pod.address}:${pod.port}`;
}

const failed = () => lines.filter(({ message }) => message === "request was not answered");
const headers = { "x-request-id": "r-7" };

test("names the request, the Function, the Pod and the cause, without the query", async () => {
  const pod = await running((request) => request.socket.destroy());
  const call = { method: "POST", path: "/orders?token=1", headers };
  expect(await bench.call(call)).toMatchObject({ status: 502 });
  expect(failed()).toEqual([
    {
      message: "request was not answered",
      requestId: "r-7",
      method: "POST",
      path: "/orders",
      destination: "Function default/hello",
      pod,
      cause: "the connection ended before there was a response",
    },
  ]);
});

test("is written once for a request that is retried, and not at all for one that is answered then", async () => {
  let left = Number.POSITIVE_INFINITY;
  await running((request, response) =>
    left-- > 0 ? request.socket.destroy() : response.end("done"),
  );
  expect(await bench.call({ headers })).toMatchObject({ status: 502 });
  expect(failed()).toHaveLength(1);
  left = 1;
  expect(await bench.call({ headers })).toMatchObject({ status: 200 });
  expect(failed()).toHaveLength(1);
});

test("says when a response broke off, and when a time limit was exceeded", async () => {
  await running((request, response) => {
    if (request.url === "/half") {
      response.writeHead(200, { "content-length": 10 });
      response.write("half");
      setTimeout(() => response.destroy(), 20);
    }
  });
  await bench.call({ path: "/half" }).catch(() => {});
  expect(await bench.call({ path: "/slow" })).toMatchObject({ status: 504 });
  expect(failed().map(({ path, cause }) => [path, cause])).toEqual([
    ["/half", "the connection ended before the response was complete"],
    ["/slow", "it exceeded its time limit (0.2 s)"],
  ]);
});

test("is bounded, however many there are", async () => {
  await running((request) => request.socket.destroy());
  const begin = performance.now();
  await Promise.all(Array.from({ length: 60 }, () => bench.call({ method: "POST" })));
  const seconds = (performance.now() - begin) / 1_000;
  expect(failed().length).toBeLessThanOrEqual(20 * (Math.ceil(seconds) + 1));
});
