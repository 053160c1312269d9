import { type Clock } from "@spry/kube";
import { type ContainerUsage, type Sandbox } from "../sandbox/sandbox.ts";

interface Sample {
  at: number;
  cpuNanoseconds: number;
}

export interface ContainerStats extends ContainerUsage {
  /** Over the last seconds; since the start of the container, before there are any. */
  cpuNanoCores: number;
}

/** A rate over less would be mostly rounding: the kernel counts in 10 ms. */
const minWindowMs = 5_000;
const maxSamples = 20;

/** CPU time turned into CPU use, from the samples that each reading leaves behind. */
export class UsageMeter {
  readonly #sandbox: Sandbox;
  readonly #clock: Clock;
  readonly #samples = new Map<string, Sample[]>();
  #reading: Promise<ContainerStats[]> | undefined;

  constructor(sandbox: Sandbox, clock: Clock) {
    this.#sandbox = sandbox;
    this.#clock = clock;
  }

  /** Callers at the same time share one look at the processes. */
  read(): Promise<ContainerStats[]> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<ContainerStats[]> {
    const now = this.#clock.now();
    const all = await this.#sandbox.usage();
    const seen = new Set<string>();
    const stats = all.map((usage) => {
      const key = `${usage.podUid}/${usage.container}/${usage.startedAt}`;
      seen.add(key);
      const samples = this.#samples.get(key) ?? [{ at: usage.startedAt, cpuNanoseconds: 0 }];
      const base = samples.findLast(({ at }) => now - at >= minWindowMs) ?? samples[0];
      const { at, cpuNanoseconds } = base ?? { at: usage.startedAt, cpuNanoseconds: 0 };
      const used = Math.max(0, usage.cpuNanoseconds - cpuNanoseconds);
      const cpuNanoCores = Math.round((used * 1000) / Math.max(1, now - at));
      const next = [...samples, { at: now, cpuNanoseconds: usage.cpuNanoseconds }];
      this.#samples.set(key, next.slice(-maxSamples));
      return { ...usage, cpuNanoCores };
    });
    for (const key of this.#samples.keys()) if (!seen.has(key)) this.#samples.delete(key);
    return stats;
  }
}
