import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

/** Resident, and proportional: what is shared between processes (Node.js itself) counted once. Bytes. */
export function memoryOf(pid: number): { rss: number; pss: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const read = (field: string) =>
    Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(text)?.[1]) * 1024;
  return { rss: read("Rss"), pss: read("Pss") };
}

const settleMs = 45_000;
const stillFor = 6;

/** What is left when all work is done and garbage is collected: for six seconds nothing grows or shrinks by a hundredth. */
export async function settledMemory(memory: () => number): Promise<number> {
  let level = memory();
  let still = 0;
  for (let waited = 0; still < stillFor && waited < settleMs; waited += 1000) {
    await pause(1000);
    const now = memory();
    still = Math.abs(now - level) < level / 100 ? still + 1 : 0;
    if (still === 0) level = now;
  }
  return memory();
}

export const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;

/** Of a process and its children, proportional: bytes. NaN where the system does not tell. */
export function memoryOfTree(pid: number): number {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
    return children
      .filter(Boolean)
      .reduce((sum, id) => sum + memoryOfTree(Number(id)), memoryOf(pid).pss);
  } catch {
    return NaN;
  }
}
