/** Faults of a node, for tests: what a supervisor does after a crash, and what a machine does after its power was away. */
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { type BackgroundProcess, endProcess, isRunning } from "../background-process.ts";
import { type Cluster, read, write } from "../cluster.ts";
import { Problem } from "../problem.ts";
import { until } from "../until.ts";
import { command } from "./command.ts";
import { inNamespaces } from "./namespaces.ts";
import { startProgram, untilContainerd } from "./node.ts";
import { type NodeProgram } from "./programs.ts";

/** Kills a program of a running node without a word, and starts it again once `whileGone` is over. */
export async function restartProgram(
  dir: string,
  name: NodeProgram,
  options: { whileGone?: () => Promise<void>; signal: AbortSignal },
): Promise<void> {
  const { whileGone, signal } = options;
  const cluster = read(dir);
  const index = cluster?.processes.findIndex((one) => one.name === name) ?? -1;
  const [first] = cluster?.processes ?? [];
  if (!cluster?.node || !first || index < 0) {
    throw new Problem(`restarting ${name} in ${dir}`, "there is no node");
  }
  await endProcess(cluster.processes[index]!, 0);
  await whileGone?.();
  const { network } = cluster.node;
  cluster.processes[index] = await startProgram(dir, first, name, { network, signal });
  write(dir, cluster);
}

const kubeletPort = 10250;
const kubeletPatienceMs = 120_000;

/** In this order, as at a start. */
const programs: NodeProgram[] = ["containerd", "kubelet", "kube-proxy"];

/** What is gone with the power: mounts, what was in memory file systems, bridges, firewall rules. */
const forget = `
awk '$2 ~ "^/(run|var/lib/kubelet/pods)/" { print $2 }' /proc/self/mounts | sort -r | while read -r each; do umount -l "$each"; done
find /run -mindepth 1 -delete
ip link delete cni0
for table in nat filter mangle; do iptables -t $table -F; iptables -t $table -X; done
true`;

/**
 * Takes the power from a node, whose disk stays: its programs and all processes of all its Pods end without a word. Once
 * `whileGone` is over its programs start again. The control plane goes on, as if it were elsewhere.
 */
export async function losePower(
  dir: string,
  options: { whileGone?: () => Promise<void>; signal: AbortSignal },
): Promise<void> {
  const { whileGone, signal } = options;
  const cluster = read(dir);
  const [first] = cluster?.processes ?? [];
  if (!cluster?.node || !first) throw new Problem(`the node of ${dir}`, "there is none");
  for (const name of programs) killIfThere(processOf(cluster, name).pid);
  // What they had started belongs to the first process now.
  for (let left = descendants(first.pid); left.length > 0; left = descendants(first.pid)) {
    for (const pid of left) killIfThere(pid);
    await pause(20);
  }
  await command(...inNamespaces(first, "sh", ["-c", forget]));
  await whileGone?.();
  const { network } = cluster.node;
  const start = async (name: NodeProgram) => {
    const started = await startProgram(dir, first, name, { network, signal });
    cluster.processes[cluster.processes.indexOf(processOf(cluster, name))] = started;
    write(dir, cluster);
    return started;
  };
  for (const name of programs) {
    const started = await start(name);
    if (name === "containerd") await untilContainerd(first, started, signal);
    if (name !== "kubelet") continue;
    // As a supervisor does: a kubelet ends when the container runtime answers, but not yet about Pods.
    await until("the kubelet listens", { signal, timeoutMs: kubeletPatienceMs }, async () => {
      if (!isRunning(processOf(cluster, name))) await start(name);
      return isListening(network.address);
    });
  }
}

function isListening(host: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(kubeletPort, host);
    const end = (is: boolean) => (socket.destroy(), resolve(is));
    socket.setTimeout(1_000, () => end(false));
    socket.on("connect", () => end(true)).on("error", () => end(false));
  });
}

function processOf({ processes }: Cluster, name: NodeProgram): BackgroundProcess {
  const found = processes.find((one) => one.name === name);
  if (!found) throw new Problem(`the node's ${name}`, "there is none");
  return found;
}

/** Living processes below this one, at any depth. */
function descendants(pid: number): number[] {
  const children = new Map<number, number[]>();
  for (const each of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const [state, parent] = stateOf(each);
    if (parent === undefined || state === "Z") continue;
    children.set(parent, [...(children.get(parent) ?? []), Number(each)]);
  }
  const below = (one: number): number[] =>
    (children.get(one) ?? []).flatMap((child) => [child, ...below(child)]);
  return below(pid);
}

/** State and parent of a process (proc(5), stat fields 3 and 4); nothing of one that has gone. */
function stateOf(pid: string): [state?: string, parent?: number] {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [state = "", parent] = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return [state, Number(parent)];
  } catch {
    return [];
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
