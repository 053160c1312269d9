/**
 * Functions and objects that come, change and go, by the hundred: the platform's memory and disk are afterwards
 * what they were. `SPRY_TEST_ROUNDS` asks for another number of Functions.
 */
import { readFileSync, statSync } from "node:fs";
import { httpsTransport, KubeClient, loadKubeconfig, resources } from "@spry/kube";
import { rounds } from "@spry/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { filesBelow } from "../support/files-below.ts";
import { functionManifest, pause, Platform } from "../support/platform.ts";

const functions = Number(process.env["SPRY_TEST_ROUNDS"] ?? rounds({ quick: 40, full: 1000 }));
/** So many are under way at a time. */
const lanes = 4;

const platform = new Platform();
let client: KubeClient;
beforeAll(async () => {
  await platform.start();
  client = new KubeClient(httpsTransport(loadKubeconfig(platform.kubeconfig)));
}, 110_000);
afterAll(() => platform.remove());

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;

/** Applied, called, edited, called, deleted. */
async function functionRound(name: string): Promise<void> {
  for (const text of ["first", "second"]) {
    await platform.k("apply -f -", functionManifest(name, answering(`${name} ${text}`)));
    await platform.callUntil(`${name}.default`, ({ body }) => body === `${name} ${text}`);
  }
  await platform.k(`delete function ${name} --wait`);
}

async function functionRounds(prefix: string, count: number): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await functionRound(`${prefix}-${next++}`);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

async function objectRounds(count: number): Promise<void> {
  const namespace = "default";
  for (let index = 0; index < count; index++) {
    const metadata = { name: `object-${index}`, namespace };
    const object = { metadata, data: { a: "x".repeat(20_000), b: String(index) } };
    await client.apply(resources.configMaps, object, { fieldManager: "churn" });
    const changed = { ...object, data: { ...object.data, b: "changed" } };
    await client.apply(resources.configMaps, changed, { fieldManager: "churn" });
    await client.delete(resources.configMaps, metadata);
  }
}

/** Resident memory of the platform's own process, in MB. */
function memory(): number {
  const status = readFileSync(`/proc/${platform.pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

/** Bytes of the whole data directory, as they are stored. */
function disk(): number {
  return filesBelow(platform.dataDir).reduce((sum, file) => {
    const stats = statSync(file, { throwIfNoEntry: false });
    return sum + (stats ? stats.blocks * 512 : 0);
  }, 0);
}

/** The history of changes is kept for five to six minutes; its memory is given back when it is collected after that. */
const keptMs = 390_000;

/** Once the platform has had some quiet minutes, in which it forgets what was, and collects its garbage. */
async function memoryAtRest(): Promise<number> {
  await pause(keptMs);
  let last = Infinity;
  const change = () => Math.abs(last - (last = memory()));
  await expect.poll(change, { interval: 6000, timeout: 120_000 }).toBeLessThan(2);
  return last;
}

test(`${functions} Functions and 1,000 objects that come, change and go leave memory and disk as they were`, async () => {
  // The first objects warm up the process: compiled code, malloc's pools.
  await functionRounds("warm", 8);
  await objectRounds(1000);
  const before = { memory: await memoryAtRest(), disk: disk() };
  await functionRounds("round", functions);
  await objectRounds(1000);
  const after = await memoryAtRest();
  console.log(`MB: ${before.memory.toFixed(1)} before, ${after.toFixed(1)} after`);
  expect(after).toBeLessThan(before.memory * 1.2);
  await expect.poll(disk, { interval: 2000, timeout: 120_000 }).toBeLessThan(before.disk * 1.5);
}, 7_200_000);
