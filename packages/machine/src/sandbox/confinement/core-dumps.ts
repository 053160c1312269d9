import { execFile } from "node:child_process";
import { promisify } from "node:util";

/**
 * Nothing that this process starts from now on writes its memory to a file when it fails. Containers cannot do so
 * anyway; this is for the helpers, which end as the program has ended.
 */
export async function withoutCoreDumps(): Promise<void> {
  const args = [`--pid=${process.pid}`, "--core=0:"];
  // Where prlimit is missing, the system's own limit holds, which is mostly 0.
  await promisify(execFile)("prlimit", args).catch(() => {});
}
