/** Metrics of a Function, sampled while they are shown. */
import { type Signal, signal } from "@preact/signals";
import { type KubeObject, quantityValue, type Resource } from "@spry/kube/browser";
import { labels } from "@spry/function/browser";
import { asUser, client } from "../api/client.ts";
import { type Counters, noRates, type Rates, ratesOf } from "./rates.ts";

export interface Sample extends Rates {
  /** Seconds since 1970. */
  time: number;
  /** Cores and MiB, for all Pods together. */
  cpu: number | null;
  memory: number | null;
  pods: number | null;
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

const samplers = new Map<string, Sampler>();

/** Samples that have been taken stay when the view is left. */
export function samplerOf(target: { namespace: string; name: string }): Sampler {
  const key = `${target.namespace}/${target.name}`;
  let sampler = samplers.get(key);
  if (!sampler) samplers.set(key, (sampler = new Sampler(target)));
  return sampler;
}
