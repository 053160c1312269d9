/** Containers that do with their log what a file lets them do: in `process`, it is their standard output. */
import { readdirSync, statSync } from "node:fs";
import path from "node:path";
import { type KubeClient, type Pod, resources } from "@spry/kube";
import { expect, test } from "vitest";
import { eventually, startMachine, type TestMachine } from "./testing.ts";

const mebibyte = 1024 * 1024;
const target = { namespace: "default", name: "noisy" };
const flood = "Container main wrote more than 200 MiB of log within 10 s";

async function run(machine: TestMachine, main: string): Promise<void> {
  const image = await machine.registry.push(
    "noisy:1",
    { "app/main.cjs": `const fs = require("node:fs"); ${main}` },
    { Entrypoint: ["node", "/app/main.cjs"] },
  );
  await machine.client.create(resources.pods, {
    metadata: target,
    spec: { restartPolicy: "Never", containers: [{ name: "main", image }] },
  });
}

function untilEnded(client: KubeClient): Promise<Pod> {
  return eventually(async () => {
    const pod = await client.get(resources.pods, target);
    expect(pod.status?.containerStatuses?.[0]?.state?.terminated).toBeDefined();
    return pod;
  }, 30_000);
}

const sizesIn = (dir: string) =>
  readdirSync(dir)
    .filter((name) => name.includes(".log"))
    .map((name) => statSync(path.join(dir, name)).size);

test.each([
  {
    name: "that extends its log to terabytes of nothing, again and again",
    main: `setInterval(() => { try { fs.ftruncateSync(1, 2 ** 42); } catch {} }, 1)`,
  },
  {
    name: "that extends its log while it is rotated",
    main: `setInterval(() => { fs.writeSync(1, "x".repeat(${4 * mebibyte})); fs.ftruncateSync(1, fs.fstatSync(1).size + 3e8); }, 1)`,
  },
  {
    name: "that writes 500 MB and then waits",
    main: `const text = Buffer.alloc(1e6, "log line\\n"); for (let i = 0; i < 500; i++) fs.writeSync(1, text); setInterval(() => {}, 1e6)`,
  },
  {
    name: "that writes 500 MB and ends",
    main: `const text = Buffer.alloc(1e6, "log line\\n"); for (let i = 0; i < 500; i++) fs.writeSync(1, text)`,
  },
  {
    name: "that hides what it has written",
    main: `const text = "x".repeat(${8 * mebibyte}); setInterval(() => { fs.writeSync(1, text); setTimeout(() => fs.ftruncateSync(1, 0), 60); }, 120)`,
  },
])(
  "a container is ended $name; neither memory nor disk is taken",
  async ({ main }) => {
    const machine = await startMachine();
    let most = process.memoryUsage().rss;
    const before = most;
    let slowest = 0;
    let last = performance.now();
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage().rss);
      slowest = Math.max(slowest, performance.now() - last);
      last = performance.now();
    }, 20);
    await run(machine, main);
    const pod = await untilEnded(machine.client);
    clearInterval(watch);
    const { message } = pod.status?.containerStatuses?.[0]?.state?.terminated ?? {};
    expect(message).toBe(flood);
    expect(most - before).toBeLessThan(150 * mebibyte);
    expect(slowest).toBeLessThan(2_000);
    const dir = path.join(machine.dataDir, "pods", pod.metadata.uid ?? "", "containers/main");
    const sizes = sizesIn(dir);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(120 * mebibyte);
    const { body } = await machine.node.kubelet(
      new Request("http://node/containerLogs/default/noisy/main?tailLines=3"),
    );
    let read = 0;
    for await (const chunk of body ?? []) read += chunk.length;
    expect(read).toBeLessThan(80 * mebibyte);
  },
  60_000,
);
