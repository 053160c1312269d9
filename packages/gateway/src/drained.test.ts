/** `GET /drained`: what a node asks before it ends the programs of a Pod. */
import { type ServerResponse } from "node:http";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, countsToken, startBench, type TestPod } from "./testing/bench.ts";

let bench: Bench;
let admin: { port: number; close(): Promise<void> };
let pod: TestPod;
const waiting: ServerResponse[] = [];

beforeEach(async () => {
  bench = await startBench({ withKnative: true });
  admin = await bench.kit.listenAdmin({ host: "127.0.0.1", port: 0 });
  pod = await bench.pod((_, response) => waiting.push(response));
  await bench.knative.revision("hello-00001");
  await bench.revisionPods("hello-00001", [pod]);
  await bench.knative.route("hello", [{ revisionName: "hello-00001", percent: 100 }]);
  await bench.heard();
});
afterEach(async () => {
  for (const response of waiting.splice(0)) response.end();
  await admin.close();
  await bench.close();
});

const ask = (address: string, token = countsToken) =>
  fetch(`http://127.0.0.1:${admin.port}/drained?pod=${address}`, {
    headers: { authorization: `Bearer ${token}` },
  }).then(({ status }) => status);

async function arrived(): Promise<ServerResponse> {
  for (;;) {
    const [first] = waiting;
    if (first) return first;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test("a Pod that is being removed is drained when its last request has been answered", async () => {
  const answered = bench.call();
  const response = await arrived();
  let isDrained = false;
  // The gateway may hear of the removal after the node has asked.
  const drained = ask(pod.address).then((status) => {
    isDrained = true;
    return status;
  });
  await bench.revisionPods("hello-00001", [], [pod]);
  await bench.heard();
  await ask("127.0.7.254");
  expect(isDrained).toBe(false);
  response.end("done");
  expect(await answered).toMatchObject({ status: 200, body: "done" });
  expect(await drained).toBe(200);
});

test("a Pod without requests is drained at once, and strangers learn nothing", async () => {
  await bench.revisionPods("hello-00001", [], [pod]);
  await bench.heard();
  expect(await ask(pod.address)).toBe(200);
  expect(await ask(pod.address, "another")).toBe(401);
});
