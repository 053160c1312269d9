import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createApiServer } from "@spry/apiserver";
import { afterEach, beforeEach, expect, test } from "vitest";
import { KubeClient } from "./client.ts";
import { EventRecorder } from "./event-recorder.ts";
import { ManualClock } from "./manual-clock.ts";
import { type ConfigMap, resources } from "./resources.ts";

let server: Awaited<ReturnType<typeof createApiServer>>;
let client: KubeClient;
let clock: ManualClock;
let recorder: EventRecorder;
let object: ConfigMap;

beforeEach(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
  clock = new ManualClock();
  recorder = new EventRecorder({ client, component: "tester", host: "here", clock });
  const metadata = { namespace: "default", name: "thing" };
  object = await client.create(resources.configMaps, { metadata });
});
afterEach(() => server.close());

const events = async () => {
  await recorder.flushed();
  return (await client.list(resources.events, { namespace: "default" })).items;
};
const note = { type: "Normal", reason: "Tested", message: "it works" } as const;

test("an event says what happened to what, and who says so", async () => {
  recorder.record(resources.configMaps, object, note);
  expect(await events()).toEqual([
    expect.objectContaining({
      ...note,
      involvedObject: expect.objectContaining({
        apiVersion: "v1",
        kind: "ConfigMap",
        name: "thing",
        namespace: "default",
        uid: object.metadata.uid,
      }) as unknown,
      count: 1,
      firstTimestamp: "2026-01-01T00:00:00Z",
      lastTimestamp: "2026-01-01T00:00:00Z",
      source: { component: "tester", host: "here" },
      reportingComponent: "tester",
    }),
  ]);
});

test("equal events are one that is counted, others are others", async () => {
  for (let i = 0; i < 3; i++) recorder.record(resources.configMaps, object, note);
  recorder.record(resources.configMaps, object, { ...note, message: "it still works" });
  await recorder.flushed();
  await clock.advance(60_000);
  recorder.record(resources.configMaps, object, note);
  const counts = (await events()).map(({ count, message, lastTimestamp }) => ({
    count,
    message,
    lastTimestamp,
  }));
  expect(counts).toEqual([
    { count: 4, message: "it works", lastTimestamp: "2026-01-01T00:01:00Z" },
    { count: 1, message: "it still works", lastTimestamp: "2026-01-01T00:00:00Z" },
  ]);
});

test("an event that has expired meanwhile is written anew", async () => {
  recorder.record(resources.configMaps, object, note);
  const [first] = await events();
  await client.delete(resources.events, {
    namespace: "default",
    name: first?.metadata.name ?? "",
  });
  recorder.record(resources.configMaps, object, note);
  expect((await events()).map(({ count }) => count)).toEqual([1]);
});

test("an object that talks too much is cut off after 25 events", async () => {
  for (let i = 0; i < 40; i++) {
    recorder.record(resources.configMaps, object, { ...note, message: `message ${i}` });
  }
  expect((await events()).reduce((sum, { count = 0 }) => sum + count, 0)).toBe(25);
});

test("from the tenth message with one reason on, similar ones are reported as one", async () => {
  for (let i = 1; i <= 12; i++)
    recorder.record(resources.configMaps, object, { ...note, message: `message ${i}` });
  const told = (await events()).map(({ message, count }) => `${count} × ${message}`);
  expect(told).toHaveLength(10);
  expect(told).toContain("1 × message 9");
  expect(told).toContain("3 × (combined from similar events): message 12");
});

test("a long message is cut at 1024 bytes, between characters", async () => {
  recorder.record(resources.configMaps, object, { ...note, message: "é".repeat(2000) });
  const [event] = await events();
  expect(Buffer.byteLength(event?.message ?? "")).toBeLessThanOrEqual(1024);
  expect(event?.message).toMatch(/^é+…$/);
});

test("an unreachable server makes no caller fail", async () => {
  const away = new KubeClient(() => Promise.reject(new Error("away")));
  const silent = new EventRecorder({ client: away, component: "tester", clock });
  silent.record(resources.configMaps, object, note);
  await silent.flushed();
});

test("what it remembers of thousands of Events is less than a kilobyte for each", async () => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  const heap = async () => {
    await new Promise((resolve) => setTimeout(resolve, 20));
    gc();
    return process.memoryUsage().heapUsed;
  };
  // An API server would keep the Events themselves.
  const forgetful = new KubeClient((request) => Promise.resolve(new Response(request.body)));
  const many = new EventRecorder({ client: forgetful, component: "kubelet", host: "here", clock });
  const about = (name: string) => ({
    metadata: { namespace: "default", name, uid: `${name}-4cce-478f-a371-7e8ccac53fc3` },
  });
  const tell = async (prefix: string, count: number) => {
    for (let index = 0; index < count; index++) {
      const pod = `${prefix}-${index}-znpdhct66n-k9tmq`;
      const message = `Created Pod: ${pod}, as many messages name what they are about`;
      many.record(resources.pods, about(pod), { type: "Normal", reason: "Created", message });
      if (index % 500 === 0) await many.flushed();
    }
    await many.flushed();
  };
  await tell("first", 500);
  const before = await heap();
  await tell("round", 3500);
  expect(((await heap()) - before) / 3500).toBeLessThan(700);
});
