/** A real node: namespaces of its own, a line to the machine, containerd, kubelet, kube-proxy, and the cluster's DNS. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  httpsTransport,
  isNotFound,
  KubeClient,
  loadKubeconfig,
  messageOf,
  resources,
} from "@spry/kube";
import { type BackgroundProcess, isRunning, lastLines } from "../background-process.ts";
import { layout } from "../components.ts";
import { until } from "../until.ts";
import { installClusterDns } from "./cluster-dns.ts";
import { command } from "./command.ts";
import { writeNodeImages } from "./images.ts";
import { makeCgroup, readSettings, removeCgroup, restoreSettings } from "./kernel.ts";
import { inNamespaces, startInNamespaces } from "./namespaces.ts";
import { disconnect, type NodeNetwork } from "./network.ts";
import {
  configureNode,
  containerdSocket,
  fileOf,
  nodeCommands,
  nodeName,
  type NodeProgram,
} from "./programs.ts";

/** What a node has changed on the machine, and `undoNode` puts back. */
export interface NodeTraces {
  network: NodeNetwork;
  cgroup: string;
  /** Kernel settings as they were. */
  settings: Record<string, string>;
}

const patienceMs = 120_000;

export function prepareNode(network: NodeNetwork): NodeTraces {
  const traces = { network, cgroup: `spry-${network.link}`, settings: readSettings() };
  makeCgroup(traces.cgroup);
  return traces;
}

/** Resolves when Pods run: the node is Ready and the cluster's DNS answers. `onStart` hears of each process at once. */
export async function startNode(
  dir: string,
  first: BackgroundProcess,
  { network, cgroup }: NodeTraces,
  options: { signal: AbortSignal; onStart: (one: BackgroundProcess) => void },
): Promise<void> {
  const { signal } = options;
  configureNode(dir, network, cgroup);
  const run = async (name: NodeProgram) => {
    const one = await startProgram(dir, first, name, { network, signal });
    options.onStart(one);
    return one;
  };
  const containerd = await run("containerd");
  await explained(containerd, signal, () => importImages(first, containerd, signal));
  const kubelet = await run("kubelet");
  const proxy = await run("kube-proxy");
  const transport = httpsTransport(loadKubeconfig(layout(dir).kubeconfig));
  try {
    const client = new KubeClient(transport);
    await installClusterDns(client);
    await explained(kubelet, signal, () =>
      untilReady([kubelet, proxy], signal, () => isNodeReady(client)),
    );
    await explained(proxy, signal, () =>
      untilReady([kubelet, proxy], signal, () => answersDns(client)),
    );
  } finally {
    transport.close();
  }
}

/** One program of a node that has been configured. */
export function startProgram(
  dir: string,
  first: BackgroundProcess,
  name: NodeProgram,
  { network, signal }: { network: NodeNetwork; signal: AbortSignal },
): Promise<BackgroundProcess> {
  const options = { cwd: dir, log: layout(dir).log(name), signal };
  const args = nodeCommands(dir, network)[name];
  return startInNamespaces(first, name, fileOf(name), args, options);
}

/** Its processes must have been ended, the namespaces' first one included. */
export async function undoNode({ network, cgroup, settings }: NodeTraces): Promise<void> {
  await disconnect(network);
  restoreSettings(settings);
  // The kernel ends the containers' processes after their namespaces' first one, and takes a moment.
  for (let attempt = 0; ; attempt++) {
    try {
      return removeCgroup(cgroup);
    } catch (error) {
      if (attempt === 600) throw error;
      await pause(50);
    }
  }
}

async function importImages(
  first: BackgroundProcess,
  containerd: BackgroundProcess,
  signal: AbortSignal,
): Promise<void> {
  const scratch = mkdtempSync(path.join(tmpdir(), "node-images-"));
  try {
    await writeNodeImages(scratch);
    const archive = path.join(scratch, "images.tar");
    await command("tar", ["-C", path.join(scratch, "images"), "-cf", archive, "."]);
    await untilContainerd(first, containerd, signal);
    await command(...inNamespaces(first, "ctr", [...ctr, "images", "import", archive]));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

const ctr = ["--address", containerdSocket, "--namespace", "k8s.io"];

/** Until it answers; a kubelet that starts before ends. */
export async function untilContainerd(
  first: BackgroundProcess,
  containerd: BackgroundProcess,
  signal: AbortSignal,
): Promise<void> {
  await until("containerd is ready", { signal, timeoutMs: patienceMs }, async () => {
    if (!isRunning(containerd)) throw new Error("it ended at its start");
    return command(...inNamespaces(first, "ctr", [...ctr, "version"])).then(
      () => true,
      () => false,
    );
  });
}

async function untilReady(
  programs: BackgroundProcess[],
  signal: AbortSignal,
  question: () => Promise<boolean>,
): Promise<void> {
  await until("the node runs Pods", { signal, timeoutMs: patienceMs }, () => {
    const ended = programs.find((one) => !isRunning(one));
    if (ended) throw new Error(`${ended.name} ended`);
    return question();
  });
}

async function isNodeReady(client: KubeClient): Promise<boolean> {
  try {
    const { status } = await client.get(resources.nodes, { name: nodeName });
    return (
      status?.conditions?.some((one) => one.type === "Ready" && one.status === "True") ?? false
    );
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

async function answersDns(client: KubeClient): Promise<boolean> {
  const target = { namespace: "kube-system", name: "coredns" };
  const { status } = await client.get(resources.deployments, target);
  return (status?.readyReplicas ?? 0) > 0;
}

/** The log goes with the directory, so its end is reported with the error. */
async function explained(
  one: BackgroundProcess,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work();
  } catch (cause) {
    const log = signal.aborted ? "" : `; the log of ${one.name} ends with\n${lastLines(one)}`;
    throw new Error(`starting a node: ${messageOf(cause)}${log}`, { cause });
  }
}
