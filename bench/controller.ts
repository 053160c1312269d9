/**
 * The controller on a real control plane: many Functions at once, whose images are known, then doing nothing, then
 * starting anew. Needs the real programs (`npm run real-apiserver -- build`). `SPRY_BENCH_FUNCTIONS`: how many (1000).
 * The cluster's own controllers and nodes are left out: each Deployment is said to be rolled out once it is there.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { buildKey, defaultFunction, type Function, functions, labels } from "@spry/function";
import {
  Controller,
  type Deployment,
  getCondition,
  httpsTransport,
  Informer,
  type KubeClient,
  KubeClient as Client,
  loadKubeconfig,
  resources,
  splitKey,
} from "@spry/kube";
import { heapShare } from "../packages/cli/src/install/controller.ts";
import type { Usage } from "../test/support/controller-process.ts";
import {
  controllerConfig,
  controllerProgram,
  ControllerProcess,
  imageOf,
  installBase,
} from "../test/support/controllers.ts";
import { pause } from "../test/support/platform.ts";
import { bundleOf, endBundling } from "../tools/images/programs.ts";
import { missingPrograms } from "../tools/real-apiserver/binaries.ts";
import { down, up } from "../tools/real-apiserver/cluster.ts";
import { measureUnit } from "./figures.ts";
import { mb } from "./memory.ts";

const count = Number(process.env["SPRY_BENCH_FUNCTIONS"] ?? 1000);
const namespace = "bench";
/** What 160 MiB, the limit of its Deployment, come to where there is no limit. */
const nodeOptions = `--max-old-space-size=${(160 * heapShare.oldPercent) / 100} --max-semi-space-size=${heapShare.semiSpaceMiB}`;
const width = 16;
const idleMs = 60_000;
const deadlineMs = Math.max(600_000, count * 400);
/** Of a thousand Functions; with more of them it grows by their objects. */
const memoryAim = 160e6;

export async function run(): Promise<void> {
  const missing = missingPrograms();
  if (missing.length > 0) {
    throw new Error(`missing ${missing.join(", ")}: npm run real-apiserver -- build`);
  }
  const unit = measureUnit();
  console.log(`ν = ${unit.toFixed(1)} ms. ${count} Functions\n`);
  const scratch = mkdtempSync(path.join(tmpdir(), "bench-controller-"));
  const dir = path.join(scratch, "cluster");
  const stop = new AbortController();
  try {
    const cluster = await up(dir, stop.signal);
    const transport = httpsTransport(loadKubeconfig(cluster.kubeconfig));
    const client = new Client(transport, { fieldManager: "bench" });
    await installBase(client);
    await client.apply(resources.namespaces, { metadata: { name: namespace } });
    // Deployments are rolled out by this program; two who write their status would disturb each other.
    for (const { name, pid } of cluster.processes) {
      if (/controller-manager|scheduler/.test(name)) process.kill(pid, "SIGTERM");
    }
    // As in its image: one file, with the flags of its Deployment.
    const program = path.join(scratch, "controller.cjs");
    writeFileSync(program, await bundleOf(controllerProgram));
    await endBundling();
    const options = { config: controllerConfig };
    const start = () =>
      new ControllerProcess(cluster.kubeconfig, "bench", options, program, nodeOptions);
    const progress = new Progress(client, stop.signal);
    await measure(client, start, progress);
    transport.close();
  } finally {
    stop.abort();
    await down(dir);
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function measure(
  client: KubeClient,
  start: () => ControllerProcess,
  progress: Progress,
): Promise<void> {
  const first = start();
  await first.leads();
  await untilQuiet(first);
  const base = await first.usage();
  const begin = performance.now();
  await applyAll(client);
  const appliedMs = performance.now() - begin;
  await Promise.race([progress.untilRunning(), first.whole()]);
  const readyMs = performance.now() - begin;
  const loaded = await untilQuiet(first);
  const perFunction = (now: number, before: number) => ((now - before) / count).toFixed(2);
  line("applied by this program after", `${(appliedMs / 1000).toFixed(1)} s`);
  line("all Running", `${(readyMs / 1000).toFixed(1)} s`);
  line("controller's processor time", `${((loaded.cpuMs - base.cpuMs) / 1000).toFixed(1)} s`);
  line("writes per Function", perFunction(loaded.writes, base.writes));
  line("Events written per Function", perFunction(loaded.events, base.events));
  memoryLine("peak memory", loaded);

  await pause(idleMs);
  const idle = await first.usage();
  const perHour = 3_600_000 / idleMs;
  const idleWrites = idle.writes + idle.events - loaded.writes - loaded.events;
  line(
    "writes in an idle hour (from a minute)",
    String(idleWrites * perHour),
    idleWrites === 0,
    "0",
  );
  const idleCpu = ((idle.cpuMs - loaded.cpuMs) * perHour) / 1000;
  line("processor time in an idle hour", `${idleCpu.toFixed(0)} s`);
  await first.end("SIGTERM");

  const second = start();
  await second.leads();
  const atStart = await second.usage();
  const resynced = await untilQuiet(second);
  const resyncMs = resynced.cpuMs - atStart.cpuMs;
  const aimMs = count;
  line(
    "pass over all with nothing to do: processor",
    `${resyncMs.toFixed(0)} ms`,
    resyncMs <= aimMs,
    `≤ ${aimMs} ms`,
  );
  line("  its reads, lists and watches", String(resynced.reads));
  line("  its writes", String(resynced.writes), resynced.writes === 0, "0");
  memoryLine("  its peak memory", resynced);
  await second.end("SIGTERM");
}

async function applyAll(client: KubeClient): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await applyOne(client, `fn-${next++}`);
  };
  await Promise.all(Array.from({ length: width }, worker));
}

/** With its image in the status, as after a build. */
async function applyOne(client: KubeClient, name: string): Promise<void> {
  const source = `module.exports = { main: () => "${name}" };`;
  const spec = { runtime: "nodejs24", source: { inline: { source } } } as const;
  const fn = defaultFunction({ metadata: { namespace, name }, spec });
  await client.create(functions, fn);
  const build = { key: buildKey(fn), image: imageOf(namespace, name) };
  const options = { subresource: "status" };
  await client.patch(functions, { namespace, name }, { status: { build } }, options);
}

/** Says of each Deployment that it is rolled out, and counts the Functions that run. */
class Progress {
  readonly #functions: Informer<Function>;

  constructor(client: KubeClient, signal: AbortSignal) {
    this.#functions = new Informer(client, functions, { namespace });
    const deployments = new Informer<Deployment>(client, resources.deployments, {
      namespace,
      labelSelector: labels.functionName,
    });
    const rolledOut = new Controller({
      name: "deployments",
      workers: 8,
      async reconcile(key) {
        const deployment = deployments.get(key);
        const { generation } = deployment?.metadata ?? {};
        if (!deployment || deployment.status?.observedGeneration === generation) return;
        const replicas = deployment.spec?.replicas ?? 1;
        const condition = (type: string, reason: string) => ({ type, status: "True", reason });
        const status = {
          observedGeneration: generation,
          replicas,
          updatedReplicas: replicas,
          readyReplicas: replicas,
          availableReplicas: replicas,
          conditions: [
            condition("Available", "MinimumReplicasAvailable"),
            condition("Progressing", "NewReplicaSetAvailable"),
          ],
        };
        const options = { subresource: "status" };
        await client.patch(resources.deployments, splitKey(key), { status }, options);
      },
    });
    rolledOut.watch(deployments);
    for (const each of [this.#functions, deployments]) void each.run(signal);
    void rolledOut.run(signal);
  }

  async untilRunning(): Promise<void> {
    const end = performance.now() + deadlineMs;
    const isRunning = ({ status }: Function) =>
      getCondition(status?.conditions, "Running")?.status === "True";
    for (;;) {
      const running = [...this.#functions.list()].filter(isRunning).length;
      if (running === count) return;
      if (performance.now() > end) throw new Error(`only ${running} of ${count} Functions run`);
      await pause(50);
    }
  }
}

/** When it has nothing left to do: three seconds that take next to no processor time and write nothing. */
async function untilQuiet(controller: ControllerProcess): Promise<Usage> {
  let before = await controller.usage();
  for (;;) {
    await pause(3000);
    const now = await controller.usage();
    const wrote = now.writes + now.events > before.writes + before.events;
    if (!wrote && now.cpuMs - before.cpuMs < 100) return now;
    before = now;
  }
}

function memoryLine(label: string, { peakRss }: Usage): void {
  if (count > 1000) line(label, mb(peakRss));
  else line(label, mb(peakRss), peakRss <= memoryAim, `≤ ${mb(memoryAim)}`);
}

function line(label: string, text: string, holds?: boolean, aim?: string): void {
  const verdict = aim === undefined ? "" : `   aim ${aim} ${holds ? "✔" : "✘"}`;
  console.log(`${label.padEnd(46)} ${text.padStart(10)}${verdict}`);
}
