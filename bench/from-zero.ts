/** From zero to the first byte through the gateway: with runtimes that wait for their Function, and without, in each sandbox. */
import { loadavg } from "node:os";
import { type Function, functions, knative } from "@spry/function";
import { httpsTransport, KubeClient, loadKubeconfig, resources } from "@spry/kube";
import { functionManifest, pause, Platform } from "../test/support/platform.ts";
import { measureUnit, quantile, timeLine } from "./figures.ts";

/** Of each language. */
const starts = Number(process.env["BENCH_STARTS"] ?? 16);
const languages = {
  "Node.js": { name: "node", runtime: "nodejs24", source: `module.exports = { main: () => "x" };` },
  Python: {
    name: "python",
    runtime: "python312",
    source: `def main(event, context):\n    return "x"\n`,
  },
};
/** Not measured: what has never run is slower than it will be. */
const practice = 2;
/** In ν. */
const aims = { warm: 1.5, cold: 4 };
type Kind = keyof typeof aims;
const all = Object.entries(languages);

export async function run(): Promise<void> {
  const { BENCH_SANDBOX: sandboxes = "process,oci", BENCH_WARM: kinds = "warm,cold" } = process.env;
  for (const sandbox of sandboxes.split(","))
    for (const kind of kinds.split(",")) await measure(sandbox, kind as Kind);
}

async function measure(sandbox: string, kind: Kind): Promise<void> {
  const warm = kind === "warm" ? all.length : 0;
  const platform = new Platform({
    args: ["--no-example", `--sandbox=${sandbox}`, `--warm=${warm}`],
  });
  await platform.start();
  try {
    const client = new KubeClient(httpsTransport(loadKubeconfig(platform.kubeconfig)));
    await prepare(platform, client);
    const times = all.map(() => [] as number[]);
    const units: number[] = [];
    for (let round = 0; round < practice + starts; round++)
      for (const [i, [, { name }]] of all.entries()) {
        await untilWaiting(platform, warm);
        const time = await firstByte(platform, `${name}-${round}`);
        if (round < practice) continue;
        times[i]?.push(time);
        units.push(measureUnit(3));
      }
    // ν is measured between the requests: only what was measured in the same seconds can be compared.
    const unit = quantile(units, 0.5);
    const load = loadavg().map((value) => value.toFixed(1));
    console.log(`${sandbox}, ${kind}: ν = ${unit.toFixed(1)} ms, load average ${load.join(" ")}`);
    for (const [i, [language]] of all.entries())
      console.log(timeLine(`${language} from zero`, times[i] ?? [], unit, aims[kind]));
    if (warm > 0) console.log(`  cold: ${await figure(platform, "spry_warm_starts_missed_total")}`);
  } finally {
    await platform.remove();
  }
}

/** Services at zero with the Functions' images: each is started once, and the end of none is part of another's start. */
async function prepare(platform: Platform, client: KubeClient): Promise<void> {
  await client.apply(resources.namespaces, { metadata: { name: "knative-serving" } });
  await client.apply(resources.configMaps, {
    metadata: { name: "config-autoscaler", namespace: "knative-serving" },
    data: { "allow-zero-initial-scale": "true" },
  });
  const scaleConfig = { minReplicas: 0, maxReplicas: 3 };
  for (const [, { name, runtime, source }] of all) {
    const manifest = functionManifest(name, source, { runtime, scaleConfig });
    await client.apply(functions, JSON.parse(manifest) as Function);
    await platform.callUntil(`${name}.default`, ({ status }) => status === 200);
    const { spec } = await client.get(knative.services, { namespace: "default", name });
    const annotations = { "autoscaling.knative.dev/initial-scale": "0" };
    const template = { metadata: { annotations }, spec: spec.template.spec };
    for (let round = 0; round < practice + starts; round++)
      await client.apply(knative.services, {
        metadata: { name: `${name}-${round}`, namespace: "default" },
        spec: { template },
      });
  }
  for (;;) {
    const { items } = await client.list(knative.services, { namespace: "default" });
    const isReady = items.every(({ status }) =>
      status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True"),
    );
    if (isReady) return pause(1_000);
    await pause(200);
  }
}

/** Resolves when so many runtimes wait, and the machine is quiet again. */
async function untilWaiting(platform: Platform, count: number): Promise<void> {
  for (;;) {
    if (count === 0 || (await figure(platform, "spry_warm_processes")) === count) break;
    await pause(50);
  }
  await pause(300);
}

async function figure(platform: Platform, name: string): Promise<number> {
  const text = await platform.metrics();
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
}

/** Milliseconds from the request to its answer, which is one packet. */
async function firstByte(platform: Platform, name: string): Promise<number> {
  const begin = performance.now();
  const { status, body } = await platform.call(`${name}.default`);
  const time = performance.now() - begin;
  if (status !== 200) throw new Error(`${name} answered ${status} from zero: ${body}`);
  return time;
}
