/**
 * The embedded API server next to a real one: etcd, kube-apiserver, controllers and scheduler of Kubernetes, with
 * the same client, one after the other in one run. Without the real programs (`npm run real-apiserver -- build`) only ours.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";
import { loadKubeconfig } from "@spry/kube";
import { Platform } from "../test/support/platform.ts";
import { missingPrograms } from "../tools/real-apiserver/binaries.ts";
import { type Cluster, down, up } from "../tools/real-apiserver/cluster.ts";
import { ApiClient, throughput } from "./api-client.ts";
import { configMap, pod } from "./api-objects.ts";
import { measureUnit, quantile } from "./figures.ts";
import { mb, memoryOf, settledMemory } from "./memory.ts";

const writes = 3000;
const width = 64;
const pods = 5000;
const watchers = 200;
const atStart = 10_000;

interface Figures {
  creates: number;
  updates: number;
  /** Milliseconds of a list of all Pods. */
  list: number;
  /** Milliseconds from one write until the last of the watchers has heard of it. */
  fanOut: number;
  /** Bytes that 1,000 Pods add to the server's memory. */
  perThousandPods: number;
}

export async function run(): Promise<void> {
  const unit = measureUnit();
  console.log(
    `ν = ${unit.toFixed(1)} ms. ${writes} writes, ${width} at a time; ${pods} Pods; ${watchers} watchers\n`,
  );
  const { ours, openMs, starts } = await measureOurs();
  const real = missingPrograms().length === 0 ? await measureReal() : undefined;
  const beside = real?.figures;
  const rate = (value: number | undefined) => (value === undefined ? "-" : `${value.toFixed(0)}/s`);
  const ms = (value: number | undefined) => (value === undefined ? "-" : `${value.toFixed(0)} ms`);
  const line = (label: string, text: string, other: string, aim = "", reached = true) =>
    console.log(
      `${label.padEnd(40)} ${text.padStart(14)} ${other.padStart(16)}${aim && `   aim ${aim} ${reached ? "✔" : "✘"}`}`,
    );
  line("", "embedded", real ? "etcd + kube" : "(no real one)");
  const { creates, updates, list, perThousandPods } = ours;
  const etcd = real?.etcd ?? 0;
  line("creates on disk", rate(creates), rate(beside?.creates), "≥ etcd alone", creates >= etcd);
  line("updates on disk", rate(updates), rate(beside?.updates), "≥ etcd alone", updates >= etcd);
  if (real) line("  puts to etcd alone, of the same size", "", rate(etcd));
  line(`list of ${pods} Pods`, ms(list), ms(beside?.list), "≤ 150 ms", list <= 150);
  line(`one write heard by ${watchers} watchers`, ms(ours.fanOut), ms(beside?.fanOut));
  const memory = beside ? mb(beside.perThousandPods) : "-";
  const alone = memoryOfApiServer();
  line("memory per 1,000 Pods, API server alone", mb(alone), memory, "≤ 6 MB", alone <= 6e6);
  line("  with the controllers in its process", mb(perThousandPods), "");
  line(`opening a store of ${atStart} objects`, ms(openMs), "", "≤ 100 ms", openMs <= 100);
  line(`the platform's start without them`, ms(starts.without), "");
  line(`the platform's start with them`, ms(starts.with), "");
}

interface Ours {
  ours: Figures;
  openMs: number;
  starts: { without: number; with: number };
}

async function measureOurs(): Promise<Ours> {
  const platform = new Platform();
  try {
    await platform.start();
    const client = clientOf(platform.kubeconfig);
    const ours = await measure(client, () => memoryOf(platform.pid).pss);
    for (const plural of ["pods", "configmaps"]) await removeAll(client, plural);
    client.close();
    const without = await medianStart(platform);
    const filler = clientOf(platform.kubeconfig);
    await throughput(atStart, width, (index) =>
      create(filler, "configmaps", configMap(`filler-${index}`, 0)),
    );
    filler.close();
    const starts = { without, with: await medianStart(platform) };
    await platform.stop();
    return { ours, starts, openMs: await openMs(path.join(platform.dataDir, "api")) };
  } finally {
    await platform.remove();
  }
}

/** Milliseconds until an API server on this directory can be asked. */
async function openMs(dataDir: string): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    const begin = performance.now();
    const api = await createApiServer({ dataDir });
    times.push(performance.now() - begin);
    await api.close();
  }
  return quantile(times, 0.5);
}

async function medianStart(platform: Platform): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    await platform.stop();
    times.push(await platform.start());
  }
  return quantile(times, 0.5);
}

async function measureReal(): Promise<{ figures: Figures; etcd: number }> {
  const scratch = mkdtempSync(path.join(tmpdir(), "bench-api-"));
  const dir = path.join(scratch, "cluster");
  try {
    const cluster = await up(dir, new AbortController().signal);
    const client = clientOf(cluster.kubeconfig);
    const servers = cluster.processes.slice(0, 2).map(({ pid }) => pid);
    const figures = await measure(client, () =>
      servers.reduce((sum, pid) => sum + memoryOf(pid).pss, 0),
    );
    client.close();
    return { figures, etcd: await etcdPuts(cluster, dir) };
  } finally {
    await down(dir);
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** The store without the API server, over its JSON gateway. */
async function etcdPuts(cluster: Cluster, dir: string): Promise<number> {
  const read = (name: string) => readFileSync(path.join(dir, "pki", name), "utf8");
  const client = new ApiClient(cluster.etcd, {
    ca: read("etcd-ca.crt"),
    cert: read("etcd-client.crt"),
    key: read("etcd-client.key"),
  });
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const rate = await throughput(writes, width, (index) =>
    client.send(
      "POST",
      "/v3/kv/put",
      JSON.stringify({
        key: base64(`/bench/${index}`),
        value: base64(JSON.stringify(configMap(`c${index}`, 0))),
      }),
    ),
  );
  client.close();
  return rate;
}

async function measure(client: ApiClient, memory: () => number): Promise<Figures> {
  // What the first start goes on doing once it is ready, images of the runtimes for one, is not measured here.
  await settledMemory(memory);
  // Code that has never run is slower than it will be.
  await throughput(500, width, (index) =>
    create(client, "configmaps", configMap(`warm-${index}`, 0)),
  );
  const creates = await throughput(writes, width, (index) =>
    create(client, "configmaps", configMap(`c${index}`, 0)),
  );
  const updates = await throughput(writes, width, (index) =>
    client.send(
      "PATCH",
      `/api/v1/namespaces/default/configmaps/c${index}`,
      JSON.stringify({ data: { key: "new" } }),
    ),
  );
  const fanOut = await measureFanOut(client);
  const before = await settledMemory(memory);
  await throughput(pods, width, (index) => create(client, "pods", pod(`p${index}`)));
  const perThousandPods = ((await settledMemory(memory)) - before) / (pods / 1000);
  const lists: number[] = [];
  for (let round = 0; round < 7; round++) {
    const begin = performance.now();
    await client.send("GET", "/api/v1/namespaces/default/pods");
    lists.push(performance.now() - begin);
  }
  return { creates, updates, fanOut, perThousandPods, list: quantile(lists, 0.5) };
}

async function measureFanOut(client: ApiClient): Promise<number> {
  const times: number[] = [];
  let heard = 0;
  let done = () => {};
  const list = JSON.parse(
    (await client.send("GET", "/api/v1/namespaces/default/configmaps?limit=1")).toString(),
  );
  const from = list.metadata.resourceVersion as string;
  const ends = await Promise.all(
    Array.from({ length: watchers }, () =>
      client.watch(
        `/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=${from}&fieldSelector=metadata.name%3Dfan-out`,
        () => {
          if (++heard === watchers) done();
        },
      ),
    ),
  );
  for (let round = 0; round < 15; round++) {
    heard = 0;
    const all = new Promise<void>((resolve) => (done = resolve));
    const begin = performance.now();
    if (round === 0) await create(client, "configmaps", configMap("fan-out", round));
    else {
      const body = JSON.stringify({ data: { round: String(round) } });
      await client.send("PATCH", "/api/v1/namespaces/default/configmaps/fan-out", body);
    }
    await all;
    times.push(performance.now() - begin);
  }
  for (const end of ends) end();
  return quantile(times, 0.5);
}

async function removeAll(client: ApiClient, plural: string): Promise<void> {
  await client.send("DELETE", `/api/v1/namespaces/default/${plural}?gracePeriodSeconds=0`);
}

/** Bytes that 1,000 Pods take in a process that is nothing but the API server. */
function memoryOfApiServer(): number {
  const program = path.join(import.meta.dirname, "api-memory.ts");
  return Number(execFileSync(process.execPath, ["--expose-gc", program, String(pods)]));
}

function clientOf(kubeconfig: string): ApiClient {
  const {
    server,
    certificateAuthority: ca,
    clientCertificate: cert,
    clientKey: key,
  } = loadKubeconfig(kubeconfig);
  return new ApiClient(server, { ca, cert, key });
}

const create = (client: ApiClient, resource: string, object: object) =>
  client.send("POST", `/api/v1/namespaces/default/${resource}`, JSON.stringify(object));
