/** Program: `npm run real-apiserver -- up | down | status | build`. See docs/contributing/real-apiserver.md. */
import path from "node:path";
import { parseArgs } from "node:util";
import {
  type ClusterConfig,
  httpsTransport,
  KubeClient,
  loadKubeconfig,
  messageOf,
} from "@spry/kube";
import { isRunning, usageOf } from "./background-process.ts";
import { binaryOf, buildMissing, nodePrograms, versions } from "./binaries.ts";
import { type Cluster, defaultDir, down, isWhole, read, up } from "./cluster.ts";
import { Problem } from "./problem.ts";

const usage = `npm run real-apiserver -- <command>

  up       start etcd, kube-apiserver, kube-controller-manager and kube-scheduler on loopback (built
           first if need be), wait until they work, print the path of the kubeconfig
  down     end exactly what up started, and remove its data
  status   what runs, and what it takes; exits with 1 when the control plane is not whole
  build    only build the programs into the cache

  --node          build, up: add a real node, so that Pods run (Linux, root, containerd, runc, CNI plugins)
  --dir DIR       where the cluster is kept (default: ${defaultDir()},
                  with --node ${defaultDir(true)})
  --use-current   up: when KUBECONFIG is set, only check that its cluster answers, and print that path`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    dir: { type: "string" },
    "use-current": { type: "boolean", default: false },
    node: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});
const dir = path.resolve(values.dir ?? defaultDir(values.node));
const interrupted = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(name, () => interrupted.abort(new Error(`interrupted by ${name}`)));
}

const commands: Record<string, () => Promise<void>> = {
  async up() {
    const current = process.env["KUBECONFIG"];
    if (values["use-current"] && current) return useCurrent(current);
    await buildMissing(interrupted.signal);
    if (values.node) await buildMissing(interrupted.signal, nodePrograms);
    const begin = performance.now();
    const { cluster, whyNot } = values.node
      ? await upWithNode(dir, interrupted.signal)
      : { cluster: await up(dir, interrupted.signal), whyNot: undefined };
    const seconds = ((performance.now() - begin) / 1000).toFixed(1);
    console.error(`Kubernetes ${cluster.version} at ${cluster.server}, ready after ${seconds} s`);
    if (cluster.node)
      console.error(`one node, which reaches this machine at ${cluster.node.network.hostAddress}`);
    else if (whyNot) console.error(`the control plane alone, without a node: ${whyNot}`);
    console.log(cluster.kubeconfig);
  },

  async down() {
    console.error((await down(dir)) ? `ended and removed ${dir}` : `nothing is up in ${dir}`);
  },

  async status() {
    const cluster = read(dir);
    if (!cluster) {
      console.log(`nothing is up in ${dir}`);
      process.exitCode = 1;
      return;
    }
    console.log(`Kubernetes ${cluster.version} at ${cluster.server}`);
    console.log(`etcd       ${cluster.etcd}\nkubeconfig ${cluster.kubeconfig}\n`);
    for (const one of cluster.processes) {
      const taken = isRunning(one) ? usageOf(one) : undefined;
      const figures = taken ? `${taken.memory} MiB, ${taken.cpu.toFixed(1)} s of processor` : "";
      const state = isRunning(one) ? "running" : `ended, see ${one.log}`;
      console.log(`${one.name.padEnd(24)} ${String(one.pid).padStart(7)}  ${state}  ${figures}`);
    }
    if (!isWhole(cluster)) process.exitCode = 1;
  },

  async build() {
    await buildMissing(interrupted.signal);
    if (values.node) await buildMissing(interrupted.signal, nodePrograms);
    console.log(path.dirname(binaryOf("etcd")));
  },
};

/** Where a node cannot be, the control plane still can. */
async function upWithNode(
  directory: string,
  signal: AbortSignal,
): Promise<{ cluster: Cluster; whyNot?: string }> {
  try {
    return { cluster: await up(directory, signal, { node: true }) };
  } catch (error) {
    if (signal.aborted) throw error;
    const wayOut = error instanceof Problem ? `: ${error.wayOut}` : "";
    const whyNot = messageOf(error) + wayOut;
    return { cluster: await up(directory, signal), whyNot };
  }
}

/** The cluster somebody else has brought up: it is asked for its version, nothing is started. */
async function useCurrent(kubeconfig: string): Promise<void> {
  try {
    const config = loadKubeconfig();
    const { gitVersion } = await versionOf(config);
    console.error(`Kubernetes ${gitVersion} at ${config.server}, from KUBECONFIG`);
    console.log(kubeconfig);
  } catch (cause) {
    throw new Problem(
      `using the cluster of KUBECONFIG=${kubeconfig}`,
      "start it, or leave out --use-current for a control plane of our own",
      { cause },
    );
  }
}

async function versionOf(config: ClusterConfig): Promise<{ gitVersion: string }> {
  const transport = httpsTransport(config);
  try {
    const answer = await new KubeClient(transport).raw("GET", "/version");
    return (await answer.json()) as { gitVersion: string };
  } finally {
    transport.close();
  }
}

const [name = "", ...more] = positionals;
const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
if (values.help || !command || more.length > 0) {
  console.error(`${usage}\n\nKubernetes ${versions().kubernetes}, etcd ${versions().etcd}`);
  process.exit(values.help ? 0 : 2);
}
try {
  await command();
} catch (error) {
  process.exitCode = 1;
  console.error(`error: ${messageOf(error)}`);
  if (error instanceof Problem) console.error(`       ${error.wayOut}`);
}
