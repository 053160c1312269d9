/**
 * What comes over a socket and is no request that a client would make: seeded, so that a failure comes again.
 * `WIRE_FUZZ_SEED` and `WIRE_FUZZ_SECONDS` make a longer run of another seed.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { resources, silentLogger, type Transport } from "@spry/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Harness, startHarness } from "../harness.ts";
import { type Answer, type Credentials, exchange, type Step } from "./exchange.ts";
import { failsInKubernetes } from "../../support/kubernetes-failures.ts";
import { Random } from "./random.ts";
import { patches } from "./patches.ts";
import { type Family, requests } from "./requests.ts";
import { podName, upgrades } from "./upgrades.ts";

const seed = Number(process.env["WIRE_FUZZ_SEED"] ?? 20_261);
const seconds = Number(process.env["WIRE_FUZZ_SECONDS"] ?? 0);
const families: Record<string, Family> = { ...requests, patches, upgrades };
const perFamily = 60;
const atOnce = 8;
const slowMs = 5_000;
const maxGrowth = 256 << 20;

let harness: Harness;
let credentials: Credentials;
const failures: object[] = [];

beforeAll(async () => {
  const log = { ...silentLogger, error: (fields: object) => void failures.push(fields) };
  const kubelet: Transport = (request) => Promise.resolve(new Response(request.body));
  harness = await startHarness({ log, kubelet: () => kubelet });
  await harness.client.create(resources.pods, {
    metadata: { name: podName, namespace: "default" },
    spec: { nodeName: "echo", containers: [{ name: "main", image: "example.org/a:1" }] },
  });
  const read = (name: string) => readFileSync(path.join(harness.directory, name), "utf8");
  const port = Number(new URL(harness.url).port);
  credentials = { port, ca: read("ca.crt"), cert: read("admin.crt"), key: read("admin.key") };
});
afterAll(() => harness.close());

/** The store's revision and all that it holds of what is written to. */
async function state(): Promise<string> {
  const answer = await harness.server.transport()(new Request("http://x/api/v1/configmaps"));
  return answer.text();
}

interface Played {
  answers: Answer[];
  before: string;
  after: string;
}

async function playedOf(all: readonly Step[][], patience: number): Promise<Played> {
  const before = await state();
  const answers = await Promise.all(all.map((steps) => exchange(credentials, steps, patience)));
  return { answers, before, after: await state() };
}

const hasWrittenRefused = ({ answers, before, after }: Played): boolean =>
  after !== before && answers.every(({ statuses }) => statuses.every((status) => status >= 400));

const remove = (name: string) =>
  harness.client.delete(resources.configMaps, { namespace: "default", name }).catch(() => {});

/** What is wrong with the answers to so many requests of a kind. */
async function problemsOf(family: string, random: Random): Promise<object[]> {
  const problems: object[] = [];
  const draw = families[family];
  for (let done = 0; done < perFamily; done += atOnce) {
    const all = Array.from({ length: atOnce }, () => draw?.(random) ?? []);
    let played = await playedOf(all, patienceOf(family));
    // Who did not wait long may have been answered later, on a busy machine: the same again, with patience.
    if (hasWrittenRefused(played) && impatient.has(family)) {
      await remove("fuzz");
      played = await playedOf(all, slowMs - 1_000);
    }
    const { answers, before, after } = played;
    for (const [index, { statuses, text, took }] of answers.entries()) {
      const sent = all[index]?.map((step) => (Buffer.isBuffer(step) ? shown(step) : step));
      if (statuses.some((each) => each >= 500) && !failsInKubernetes.test(text))
        problems.push({ family, sent, failed: shown(text) });
      if (took > slowMs) problems.push({ family, sent, took });
    }
    if (hasWrittenRefused(played)) problems.push({ family, before, after });
    problems.push(
      ...failures.splice(0).filter((each) => !failsInKubernetes.test(JSON.stringify(each))),
    );
  }
  const ready = "GET /readyz HTTP/1.1\r\nhost: k\r\nconnection: close\r\n\r\n";
  const { statuses } = await exchange(credentials, [Buffer.from(ready)]);
  if (statuses.join() !== "200") problems.push({ family, ready: statuses });
  return problems;
}

/** Where frames are broken the server may well wait for the rest. */
const impatient = new Set(["framing", "upgrades"]);
const patienceOf = (family: string) => (impatient.has(family) ? 250 : slowMs);
const shown = (bytes: Buffer | string) => bytes.toString("latin1").slice(0, 1000);

test.each(Object.keys(families))(
  "%s: the server does not fail, hang, grow or write what it refuses",
  async (family) => {
    const random = new Random(seed);
    expect(await problemsOf(family, random)).toEqual([]);
    const settled = process.memoryUsage.rss();
    const until = performance.now() + (seconds * 1000) / Object.keys(families).length;
    while (performance.now() < until) expect(await problemsOf(family, random)).toEqual([]);
    expect(process.memoryUsage.rss() - settled).toBeLessThan(maxGrowth);
  },
  60_000 + seconds * 2_000,
);
