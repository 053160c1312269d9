import { readFileSync } from "node:fs";

/** Resident, and proportional: what is shared between processes (Node.js itself) counted once. Bytes. */
export function memoryOf(pid: number): { rss: number; pss: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const read = (field: string) =>
    Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(text)?.[1]) * 1024;
  return { rss: read("Rss"), pss: read("Pss") };
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
