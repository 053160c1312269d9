import { readdirSync, readFileSync } from "node:fs";

/** Command lines of all processes that name the directory in their arguments or environment. */
export function processesOf(dir: string): string[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry) && Number(entry) !== process.pid)
    .flatMap((pid) => {
      try {
        const text =
          readFileSync(`/proc/${pid}/cmdline`, "utf8") +
          readFileSync(`/proc/${pid}/environ`, "utf8");
        return text.includes(dir)
          ? [`${pid} ${readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")}`]
          : [];
      } catch {
        return [];
      }
    });
}

/** What is mounted below the directory. */
export function mountsOf(dir: string): string[] {
  const lines = readFileSync("/proc/self/mounts", "utf8").split("\n");
  return lines.filter((line) => line.includes(` ${dir}/`));
}
