/**
 * Ends processes that a Function's process has started and that have left its process group. debugpy's adapter does so, and
 * never ends when the Function's process ends before connecting to it. They are found by their `HOME`, which only they have.
 */
import { readdirSync, readFileSync } from "node:fs";
import { signalProcess } from "@spry/kube";

/** On Linux; elsewhere such processes end by themselves once they are idle. */
export function endProcessesWithHome(home: string): number {
  if (process.platform !== "linux") return 0;
  const marker = `\0HOME=${home}\0`;
  let count = 0;
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      if (!`\0${readFileSync(`/proc/${pid}/environ`, "latin1")}`.includes(marker)) continue;
      if (signalProcess(pid, "SIGKILL")) count++;
    } catch {
      // Another user's, or it has just ended.
    }
  }
  return count;
}
