/**
 * The embedded API server beside a real one: etcd, kube-apiserver, controllers and scheduler of Kubernetes, with
 * the same client, one after the other in one run. Without the real programs (`npm run real-apiserver -- build`) only ours.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { loadKubeconfig } from "@spry/kube";
import { pause, Platform } from "../test/support/platform.ts";
import { missingPrograms } from "../tools/real-apiserver/binaries.ts";
import { type Cluster, down, up } from "../tools/real-apiserver/cluster.ts";
import { ApiClient, throughput } from "./api-client.ts";
import { measureUnit, quantile } from "./figures.ts";
import { mb, memoryOf } from "./memory.ts";

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
  const { ours, start } = await measureOurs();
  const real = missingPrograms().length === 0 ? await measureReal() : undefined;
  const line = (label: string, text: string, other: string, verdict: boolean, aim: string) =>
    console.log(
      `${label.padEnd(40)} ${text.padStart(14)} ${other.padStart(16)}   aim ${aim} ${verdict ? "✔" : "✘"}`,
    );
  console.log(
    `${"".padEnd(40)} ${"embedded".padStart(14)} ${(real ? "etcd + kube" : "(no real one)").padStart(16)}`,
  );
  const rate = (value: number | undefined) => (value === undefined ? "-" : `${value.toFixed(0)}/s`);
  const ms = (value: number | undefined) => (value === undefined ? "-" : `${value.toFixed(0)} ms`);
  const beside = real?.figures;
  line(
    "creates acknowledged on disk",
    rate(ours.creates),
    rate(beside?.creates),
    ours.creates >= (real?.etcd ?? 0),
    "≥ etcd alone",
  );
  line(
    "updates acknowledged on disk",
    rate(ours.updates),
    rate(beside?.updates),
    ours.updates >= (real?.etcd ?? 0),
    "≥ etcd alone",
  );
  if (real) line("  etcd alone, puts of the same size", "", rate(real.etcd), true, "-");
  line(`list of ${pods} Pods`, ms(ours.list), ms(beside?.list), ours.list <= 150, "≤ 150 ms");
  line(
    `one write heard by ${watchers} watchers`,
    ms(ours.fanOut),
    ms(beside?.fanOut),
    ours.fanOut <= (beside?.fanOut ?? Infinity),
    "≤ the real one",
  );
  line(
    "memory per 1,000 Pods",
    mb(ours.perThousandPods),
    beside ? mb(beside.perThousandPods) : "-",
    ours.perThousandPods <= 6e6,
    "≤ 6 MB",
  );
  line(
    `start with ${atStart} objects more`,
    ms(start.full - start.empty),
    "",
    start.full - start.empty <= 100,
    "≤ 100 ms",
  );
}

async function measureOurs(): Promise<{ ours: Figures; start: { empty: number; full: number } }> {
  const platform = new Platform();
  try {
    await platform.start();
    const client = clientOf(platform.kubeconfig);
    const ours = await measure(client, () => memoryOf(platform.pid).pss);
    await removePods(client);
    client.close();
    const empty = await medianStart(platform);
    const filler = clientOf(platform.kubeconfig);
    await throughput(atStart, width, (index) =>
      create(filler, "configmaps", configMap(`filler-${index}`, 0)),
    );
    filler.close();
    const full = await medianStart(platform);
    return { ours, start: { empty, full } };
  } finally {
    await platform.remove();
  }
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
  await pause(3000);
  const before = memory();
  await throughput(pods, width, (index) => create(client, "pods", pod(`p${index}`)));
  await pause(3000);
  const perThousandPods = (memory() - before) / (pods / 1000);
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

async function removePods(client: ApiClient): Promise<void> {
  await client.send("DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0");
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

const configMap = (name: string, round: number) => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, labels: { app: "bench" } },
  data: { round: String(round), text: "x".repeat(512) },
});

/** Of no scheduler's, so that nobody touches it; as large as a Function's Pod. */
const pod = (name: string) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, labels: { app: "bench", "serverless.kyma-project.io/function-name": "bench" } },
  spec: {
    schedulerName: "none",
    containers: [
      {
        name: "function",
        image:
          "registry.example/bench@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        ports: [{ containerPort: 8080 }],
        env: Array.from({ length: 12 }, (_, index) => ({
          name: `VARIABLE_${index}`,
          value: `value ${index}`,
        })),
        readinessProbe: { httpGet: { path: "/healthz", port: 8080 }, periodSeconds: 5 },
        resources: { limits: { cpu: "100m", memory: "128Mi" } },
      },
    ],
  },
});
