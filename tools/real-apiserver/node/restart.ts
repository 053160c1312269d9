/** Faults of a node, for tests: what a supervisor does after a crash. */
import { endProcess } from "../background-process.ts";
import { read, write } from "../cluster.ts";
import { Problem } from "../problem.ts";
import { startProgram } from "./node.ts";
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
