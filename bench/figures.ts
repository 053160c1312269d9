import { spawnSync } from "node:child_process";

/** ν: median milliseconds of `node -e 0` in a clean environment, on this machine, now. */
export function measureUnit(rounds = 21): number {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const begin = performance.now();
    spawnSync(process.execPath, ["-e", "0"], { env: {} });
    times.push(performance.now() - begin);
  }
  return quantile(times, 0.5);
}

export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? NaN;
}

/** A line of a result table: median and p95 in milliseconds and in ν, next to the aim. */
export function timeLine(
  label: string,
  times: readonly number[],
  unit: number,
  aim?: number,
): string {
  const [median, p95] = [quantile(times, 0.5), quantile(times, 0.95)];
  const both = (ms: number) =>
    `${ms.toFixed(0).padStart(6)} ms ${(ms / unit).toFixed(1).padStart(6)} ν`;
  const verdict = aim === undefined ? "" : `   aim ≤ ${aim} ν ${median / unit <= aim ? "✔" : "✘"}`;
  return `${label.padEnd(44)} median ${both(median)}   p95 ${both(p95)}${verdict}   n=${times.length}`;
}
