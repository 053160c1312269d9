/** Functions from zero: the first byte after a cold start, a burst, what idle ones cost, and what the scaler does. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { loadavg } from "node:os";
import { type Function, functions, knative } from "@spry/function";
import { httpsTransport, KubeClient, loadKubeconfig, resources } from "@spry/kube";
import { functionManifest, pause, Platform } from "../test/support/platform.ts";
import { measureUnit, quantile, timeLine } from "./figures.ts";
import { run as fromZero } from "./from-zero.ts";
import { mb, memoryOf } from "./memory.ts";

const coldStarts = Number(process.env["BENCH_COLD"] ?? 20);
const idleServices = Number(process.env["BENCH_IDLE"] ?? 1000);
const burst = 200;
const annotations = { "autoscaling.knative.dev/window": "6s" };
const scaleConfig = { minReplicas: 0, maxReplicas: 3 };

export async function run(): Promise<void> {
  await fromZero();
  const platform = new Platform();
  await platform.start();
  try {
    const client = new KubeClient(httpsTransport(loadKubeconfig(platform.kubeconfig)));
    await configureScaler(client);
    await apply(client, "node", "nodejs24", `module.exports = { main: () => "x" };`);
    await apply(client, "python", "python312", `def main(event, context):\n    return "x"\n`);
    await cold(platform, client, "");
    await bursts(platform, client);
    await idle(platform, client);
    await cold(platform, client, `, ${idleServices} others at zero`);
  } finally {
    await platform.remove();
  }
}

async function configureScaler(client: KubeClient): Promise<void> {
  await client.apply(resources.namespaces, { metadata: { name: "knative-serving" } });
  await client.apply(resources.configMaps, {
    metadata: { name: "config-autoscaler", namespace: "knative-serving" },
    data: { "scale-to-zero-grace-period": "0s", "allow-zero-initial-scale": "true" },
  });
}

async function apply(client: KubeClient, name: string, runtime: string, source: string) {
  const spec = { runtime, scaleConfig, annotations };
  await client.apply(functions, JSON.parse(functionManifest(name, source, spec)) as Function);
}

/**
 * Milliseconds from a request at zero to its answer, which is one packet. ν is measured between the requests: on a machine that
 * does other things, too, only what was measured in the same seconds can be compared.
 */
async function cold(platform: Platform, client: KubeClient, where: string): Promise<void> {
  const names = ["node", "python"];
  const times: Record<string, number[]> = { node: [], python: [] };
  const units: number[] = [];
  for (const name of names)
    await platform.callUntil(`${name}.default`, ({ status }) => status === 200);
  for (let round = 0; round < coldStarts; round++) {
    for (const name of names) await atZero(client, name);
    // The end of the old Pods is not part of the next ones' start.
    await pause(300);
    for (const name of names) {
      const begin = performance.now();
      const { status, body } = await platform.call(`${name}.default`);
      times[name]?.push(performance.now() - begin);
      if (status !== 200) throw new Error(`${name} answered ${status} from zero: ${body}`);
      units.push(measureUnit(3));
    }
  }
  const unit = quantile(units, 0.5);
  console.log(
    `ν = ${unit.toFixed(1)} ms, load average ${loadavg()
      .map((each) => each.toFixed(1))
      .join(" ")}`,
  );
  console.log(timeLine(`Node.js, first byte from zero${where}`, times["node"] ?? [], unit, 4));
  console.log(timeLine(`Python, first byte from zero${where}`, times["python"] ?? [], unit, 8));
}

async function atZero(client: KubeClient, name: string): Promise<void> {
  const labelSelector = `serving.knative.dev/service=${name}`;
  for (;;) {
    const { items } = await client.list(resources.pods, { namespace: "default", labelSelector });
    if (items.length === 0) break;
    await pause(100);
  }
}

async function bursts(platform: Platform, client: KubeClient): Promise<void> {
  await atZero(client, "node");
  const pods = new Set<string>();
  const watching = new AbortController();
  const labelSelector = "serving.knative.dev/service=node";
  const { metadata } = await client.list(resources.pods, { namespace: "default", labelSelector });
  const { resourceVersion = "" } = metadata;
  const options = { namespace: "default", labelSelector, resourceVersion };
  const watch = (async () => {
    const events = client.watch(resources.pods, { ...options, signal: watching.signal });
    for await (const { object } of events) pods.add(object.metadata.uid ?? "");
  })().catch(() => {});
  const begin = performance.now();
  const answers = await Promise.all(
    Array.from({ length: burst }, () => platform.call("node.default")),
  );
  const ms = performance.now() - begin;
  await pause(1_000);
  watching.abort();
  await watch;
  const lost = answers.filter(({ status }) => status !== 200).length;
  const isWell = lost === 0 && pods.size <= 3;
  console.log(
    `burst of ${burst} at zero: all answered after ${ms.toFixed(0)} ms, ${pods.size} Pods, ${lost} lost (aim 1 to 3 Pods, none lost ${isWell ? "✔" : "✘"})`,
  );
}

/** Knative Services with the Function's image, which have never had a Pod: what a Function at zero is to the platform. */
async function idle(platform: Platform, client: KubeClient): Promise<void> {
  const kservice = await client.get(knative.services, { namespace: "default", name: "node" });
  const { template } = kservice.spec;
  const before = platformMemory(platform);
  const begin = performance.now();
  for (let at = 0; at < idleServices; at += 20) {
    const names = Array.from(
      { length: Math.min(20, idleServices - at) },
      (_, i) => `idle-${at + i}`,
    );
    await Promise.all(
      names.map((name) =>
        client.apply(knative.services, {
          metadata: { name, namespace: "default" },
          spec: {
            template: {
              metadata: {
                annotations: { ...annotations, "autoscaling.knative.dev/initial-scale": "0" },
              },
              spec: template.spec,
            },
          },
        }),
      ),
    );
  }
  for (;;) {
    const { items } = await client.list(knative.services, { namespace: "default" });
    const isReady = items.every(({ status }) =>
      status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True"),
    );
    if (items.length >= idleServices && isReady) break;
    await pause(500);
  }
  const seconds = (performance.now() - begin) / 1000;
  await pause(10_000);
  const more = platformMemory(platform) - before;
  const cpu = await busy(platform, 10_000);
  console.log(
    `${idleServices} services at zero, ready after ${seconds.toFixed(0)} s: ${mb(more)} more in the platform (aim ≤ 100 MB ${more <= 100e6 ? "✔" : "✘"}), ${(cpu * 100).toFixed(1)} % of a core when idle`,
  );
}

function processesOf(platform: Platform): number[] {
  const gateway = JSON.parse(readFileSync(`${platform.dataDir}/gateway.json`, "utf8")) as {
    pid: number;
  };
  return [platform.pid, gateway.pid];
}

function platformMemory(platform: Platform): number {
  return processesOf(platform).reduce((sum, pid) => sum + memoryOf(pid).pss, 0);
}

/** Cores that platform and gateway use for so long. */
async function busy(platform: Platform, ms: number): Promise<number> {
  const ticks = Number(spawnSync("getconf", ["CLK_TCK"], { encoding: "utf8" }).stdout) || 100;
  const used = () =>
    processesOf(platform).reduce((sum, pid) => {
      const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
      const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return sum + (Number(fields[11]) + Number(fields[12])) / ticks;
    }, 0);
  const before = used();
  await pause(ms);
  return (used() - before) / (ms / 1000);
}
