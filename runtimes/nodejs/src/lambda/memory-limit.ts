import { memoryLimitOfGroup } from "../memory-left.ts";

/** What the platform makes the heap's limit of (environment.ts of the room function). */
const heapShare = 0.6;

/** In bytes: the container's, or where no control group keeps it, the one that the heap's size was computed from; infinite without either. */
export function memoryLimit(): number {
  return Math.min(memoryLimitOfGroup(), declaredLimit());
}

/** By `--max-old-space-size`, which has been rounded down: limits are mostly even. */
export function declaredLimit(): number {
  const all = [...process.execArgv, process.env["NODE_OPTIONS"] ?? ""].join(" ");
  const [, megabytes] = [...all.matchAll(/--max[-_]old[-_]space[-_]size=(\d+)/g)].at(-1) ?? [];
  if (megabytes === undefined) return Infinity;
  return Math.ceil(Number(megabytes) / heapShare / 4) * 4 * 2 ** 20;
}
