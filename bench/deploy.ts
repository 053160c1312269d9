/**
 * How long a person waits: start-up to ready, apply to the first 200, edit to the new answer; and
 * what the idle platform weighs. Objects are written straight to the API (no kubectl start in it).
 */
import { readdirSync, readFileSync } from "node:fs";
import { functions, type Function } from "@spry/function";
import { httpsTransport, KubeClient, loadKubeconfig } from "@spry/kube";
import { functionManifest, pause, Platform } from "../test/support/platform.ts";
import { measureUnit, timeLine } from "./figures.ts";
import { mb, memoryOf } from "./memory.ts";

const starts = 7;
const deploys = 25;

export async function run(): Promise<void> {
  const unit = measureUnit();
  console.log(
    `ν = ${unit.toFixed(1)} ms (median of node -e 0, Node.js ${process.versions.node})\n`,
  );

  const first: number[] = [];
  const again: number[] = [];
  for (let round = 0; round < starts; round++) {
    const platform = new Platform();
    first.push(await platform.start());
    await platform.stop();
    again.push(await platform.start());
    await platform.remove();
  }
  console.log(timeLine("start-up to ready, empty directory", first, unit, 75));
  console.log(timeLine("start-up to ready, second start", again, unit, 75));

  const platform = new Platform();
  await platform.start();
  try {
    await pause(3_000);
    printMemory("idle after the start", platform);
    const client = new KubeClient(httpsTransport(loadKubeconfig(platform.kubeconfig)));
    await deployAndEdit(platform, client, "warm-up");
    const applied: number[] = [];
    const edited: number[] = [];
    for (let round = 0; round < deploys; round++) {
      const times = await deployAndEdit(platform, client, `bench-${round}`);
      applied.push(times.apply);
      edited.push(times.edit);
    }
    console.log(timeLine("apply to first 200 (inline, no dependencies)", applied, unit, 15));
    console.log(timeLine("code edit to the new answer", edited, unit, 25));
    await pause(5_000);
    printMemory("idle after these deployments", platform);
  } finally {
    await platform.remove();
  }
}

/** Resident, and proportional: what is shared between the processes (Node.js itself) counted once. */
function printMemory(when: string, platform: Platform): void {
  const memory = platformMemory(platform);
  const sum = (of: (one: (typeof memory)[number]) => number) =>
    memory.reduce((total, one) => total + of(one), 0);
  const rss = sum((one) => one.rss);
  const pss = sum((one) => one.pss);
  const each = memory.map((one) => `${one.name} ${mb(one.rss)}`).join(", ");
  const verdict = pss <= 200e6 ? "✔" : "✘";
  console.log(`memory, ${when}: PSS ${mb(pss)} (aim ≤ 200 MB ${verdict}), RSS ${mb(rss)}: ${each}`);
}

/** One Function's life: applied, answered, edited, answered anew, deleted. */
async function deployAndEdit(
  platform: Platform,
  client: KubeClient,
  name: string,
): Promise<{ apply: number; edit: number }> {
  const apply = async (answer: string) => {
    const source = `module.exports = { main: () => ${JSON.stringify(answer)} };`;
    const begin = performance.now();
    await client.apply(functions, JSON.parse(functionManifest(name, source)) as Function);
    for (;;) {
      const { status, body } = await platform.call(`${name}.default`);
      if (status === 200 && body === answer) return performance.now() - begin;
      await pause(2);
    }
  };
  const times = { apply: await apply("first"), edit: await apply("second") };
  await client.delete(functions, { namespace: "default", name });
  // The old Pods' end is part of no figure.
  await pause(300);
  return times;
}

/** Everything that runs for the platform itself: its process and the gateway; Functions' processes are not its own. */
function platformMemory(platform: Platform): { name: string; rss: number; pss: number }[] {
  const gateway = JSON.parse(readFileSync(`${platform.dataDir}/gateway.json`, "utf8")) as {
    pid: number;
  };
  const own = [
    { name: "control plane, node agent, registry", pid: platform.pid },
    { name: "gateway", pid: gateway.pid },
  ];
  const others = childrenOf(platform.pid)
    .filter((pid) => pid !== gateway.pid && !isContainer(pid))
    .map((pid) => ({ name: `process ${pid}`, pid }));
  return [...own, ...others].map(({ name, pid }) => ({ name, ...memoryOf(pid) }));
}

function isContainer(pid: number): boolean {
  return readFileSync(`/proc/${pid}/environ`, "utf8").includes("SPRY_POD_UID=");
}

function childrenOf(pid: number): number[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((candidate) => {
      try {
        const stat = readFileSync(`/proc/${candidate}/stat`, "utf8");
        return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]) === pid;
      } catch {
        return false;
      }
    });
}
