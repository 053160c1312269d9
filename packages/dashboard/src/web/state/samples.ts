/** How a Function does, sampled while its metrics are looked at. */
import { type Signal, signal } from "@preact/signals";
import { type KubeObject, quantityValue, type Resource } from "@spry/kube/browser";
import { labels } from "@spry/function/browser";
import { asUser, client } from "../api/client.ts";

export interface Sample {
  /** Seconds since 1970. */
  time: number;
  requestsPerSecond: number | null;
  errorsPerSecond: number | null;
  /** Milliseconds; of the requests since the sample before, null without any. */
  p50: number | null;
  p95: number | null;
  p99: number | null;
  coldStarts: number | null;
  /** Cores, and MiB; of all Pods together. */
  cpu: number | null;
  memory: number | null;
  pods: number | null;
}

interface Counters {
  requests: Record<string, number>;
  buckets: [bound: string, count: number][];
  coldStarts: number;
}

interface PodMetrics extends KubeObject {
  containers: { usage: { cpu: string; memory: string } }[];
}

const podMetrics: Resource<PodMetrics> = {
  group: "metrics.k8s.io",
  version: "v1beta1",
  kind: "PodMetrics",
  plural: "pods",
  namespaced: true,
};

const everyMs = 2_000;
/** An hour. */
const maxSamples = 1_800;

class Sampler {
  readonly samples: Signal<Sample[]> = signal([]);
  readonly #target: { namespace: string; name: string };
  #before: { time: number; counters: Counters } | undefined;

  constructor(target: { namespace: string; name: string }) {
    this.#target = target;
  }

  start(): () => void {
    let timer: ReturnType<typeof setTimeout>;
    let isOver = false;
    const run = async () => {
      await this.#sample();
      if (!isOver) timer = setTimeout(() => void run(), everyMs);
    };
    void run();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }

  async #sample(): Promise<void> {
    const [counters, usage] = await Promise.all([this.#counters(), this.#usage()]);
    const time = Date.now() / 1000;
    const rates = counters && ratesOf(this.#before, { time, counters });
    this.#before = counters && { time, counters };
    this.samples.value = [
      ...this.samples.value.slice(1 - maxSamples),
      { time, ...noRates, ...rates, ...usage },
    ];
  }

  async #counters(): Promise<Counters | undefined> {
    const { namespace, name } = this.#target;
    try {
      const response = await asUser(`/metrics/${namespace}/${name}`, {});
      return response.ok ? ((await response.json()) as Counters) : undefined;
    } catch {
      return undefined;
    }
  }

  async #usage(): Promise<Pick<Sample, "cpu" | "memory" | "pods">> {
    const { namespace, name } = this.#target;
    try {
      const labelSelector = `${labels.functionName}=${name}`;
      const { items } = await client.list(podMetrics, { namespace, labelSelector });
      const sum = (key: "cpu" | "memory") =>
        items
          .flatMap(({ containers }) => containers)
          .reduce((all, { usage }) => all + quantityValue(usage[key]), 0);
      return { cpu: sum("cpu"), memory: sum("memory") / 1024 ** 2, pods: items.length };
    } catch {
      return { cpu: null, memory: null, pods: null };
    }
  }
}

const noRates = {
  requestsPerSecond: null,
  errorsPerSecond: null,
  p50: null,
  p95: null,
  p99: null,
  coldStarts: null,
};

type Rates = Omit<Sample, "time" | "cpu" | "memory" | "pods">;

/** What has happened between two looks at the counters; nothing is known of the time before the first. */
export function ratesOf(
  before: { time: number; counters: Counters } | undefined,
  now: { time: number; counters: Counters },
): Rates {
  if (!before) return noRates;
  const seconds = Math.max(now.time - before.time, 0.001);
  // A gateway that has started again counts from zero.
  const since = (a: number | undefined, b: number) => (b >= (a ?? 0) ? b - (a ?? 0) : b);
  let requests = 0;
  let errors = 0;
  for (const [code, count] of Object.entries(now.counters.requests)) {
    const more = since(before.counters.requests[code], count);
    requests += more;
    if (code.startsWith("5")) errors += more;
  }
  const earlier = new Map(before.counters.buckets);
  const buckets = now.counters.buckets.map(([bound, count]): [number, number] => [
    bound === "+Inf" ? Infinity : Number(bound),
    since(earlier.get(bound), count),
  ]);
  return {
    requestsPerSecond: requests / seconds,
    errorsPerSecond: errors / seconds,
    p50: quantile(buckets, 0.5),
    p95: quantile(buckets, 0.95),
    p99: quantile(buckets, 0.99),
    coldStarts: since(before.counters.coldStarts, now.counters.coldStarts),
  };
}

/** In milliseconds, by linear interpolation within the bucket, as Prometheus estimates it; null without requests. */
export function quantile(buckets: [bound: number, count: number][], share: number): number | null {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total === 0) return null;
  const rank = share * total;
  let [lower, below] = [0, 0];
  for (const [bound, count] of buckets) {
    if (count >= rank) {
      if (bound === Infinity) return lower * 1000;
      const part = count === below ? 1 : (rank - below) / (count - below);
      return (lower + (bound - lower) * part) * 1000;
    }
    [lower, below] = [bound, count];
  }
  return null;
}

const samplers = new Map<string, Sampler>();

/** Samples that have been taken stay when the view is left. */
export function samplerOf(target: { namespace: string; name: string }): Sampler {
  const key = `${target.namespace}/${target.name}`;
  let sampler = samplers.get(key);
  if (!sampler) samplers.set(key, (sampler = new Sampler(target)));
  return sampler;
}
