import { readdirSync, readFileSync } from "node:fs";

/** What a process takes now. */
export interface Footprint {
  /** Of its memory that is resident, in MiB. */
  residentMiB: number;
  /** Open descriptors. */
  descriptors: number;
}

/** Throws when there is no such process. */
export function footprintOf(pid: number): Footprint {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return {
    residentMiB: Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
  };
}

/** The medians of the four quarters of a time in which samples were taken at a constant rate. */
export function quarterMedians(samples: readonly number[]): [number, number, number, number] {
  const medianOf = (n: number) => {
    const part = samples.slice((n * samples.length) / 4, ((n + 1) * samples.length) / 4);
    return part.toSorted((a, b) => a - b)[Math.floor(part.length / 2)] ?? Number.NaN;
  };
  return [medianOf(0), medianOf(1), medianOf(2), medianOf(3)];
}
