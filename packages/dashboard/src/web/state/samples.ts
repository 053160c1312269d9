/** Metrics of a Function, sampled while they are shown. */
import { type Signal, signal } from "@preact/signals";
import {
  isForbidden,
  isNotFound,
  type KubeObject,
  quantityValue,
  type Resource,
} from "@spry/kube/browser";
import { labels } from "@spry/function/browser";
import { connectionState } from "../api/tab-connection.ts";
import { asUser, client } from "../api/client.ts";
import { fitted } from "./shape.ts";
import { type Counters, noRates, type Rates, ratesOf } from "./rates.ts";

export interface Sample extends Rates {
  /** Seconds since 1970. */
  time: number;
  /** Cores and MiB, for all Pods together; null where nothing serves `metrics.k8s.io`. */
  cpu: number | null;
  memory: number | null;
  /** Those that run. */
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

const countersShape = {
  "requests!": { "*": "number" },
  "buckets!": [["any"]],
  "coldStarts!": "number",
} as const;
const metricsShape = {
  "items!": [{ "containers!": [{ "usage!": { "cpu!": "text", "memory!": "text" } }] }],
} as const;
const everyMs = 2_000;
const maxGapSeconds = 8;
/** An hour. */
const maxSamples = 1_800;

class Sampler {
  readonly samples: Signal<Sample[]> = signal([]);
  /** Why CPU and memory are not known, where that will not change by itself. */
  readonly usageProblem: Signal<string | undefined> = signal(undefined);
  readonly #target: { namespace: string; name: string };
  #before: { time: number; counters: Counters } | undefined;

  constructor(target: { namespace: string; name: string }) {
    this.#target = target;
  }

  /** Samples until the returned function is called. `running` returns the number of Pods that run at that moment. */
  start(running: () => number): () => void {
    let timer: ReturnType<typeof setTimeout>;
    let isOver = false;
    const run = async () => {
      await this.#sample(running);
      if (!isOver) timer = setTimeout(() => void run(), everyMs);
    };
    void run();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }

  async #sample(running: () => number): Promise<void> {
    const [counters, usage] = await Promise.all([this.#counters(), this.#usage()]);
    const time = Date.now() / 1000;
    const rates = counters && ratesOf(this.#before, { time, counters });
    this.#before = counters && { time, counters };
    const before = this.samples.value.slice(2 - maxSamples);
    const last = before.at(-1)?.time;
    // While the view was closed, or nothing answered, nothing is known: no line is drawn through that.
    const gap =
      last !== undefined && time - last > maxGapSeconds
        ? [{ time: last + everyMs / 1000, ...noRates, cpu: null, memory: null, pods: null }]
        : [];
    const isAway = connectionState.value === "lost";
    const pods = isAway ? null : running();
    this.samples.value = [...before, ...gap, { time, ...noRates, ...rates, ...usage, pods }];
  }

  async #counters(): Promise<Counters | undefined> {
    const { namespace, name } = this.#target;
    try {
      const response = await asUser(`/metrics/${namespace}/${name}`, {});
      return response.ok ? fitted<Counters>(countersShape, await response.json()) : undefined;
    } catch {
      return undefined;
    }
  }

  async #usage(): Promise<Pick<Sample, "cpu" | "memory">> {
    const { namespace, name } = this.#target;
    try {
      const labelSelector = `${labels.functionName}=${name}`;
      const list = await client.list(podMetrics, { namespace, labelSelector });
      const { items } = fitted<{ items: PodMetrics[] }>(metricsShape, list);
      const sum = (key: "cpu" | "memory") =>
        items
          .flatMap(({ containers }) => containers)
          .reduce((all, { usage }) => all + quantityValue(usage[key]), 0);
      this.usageProblem.value = undefined;
      return { cpu: sum("cpu"), memory: sum("memory") / 1024 ** 2 };
    } catch (error) {
      this.usageProblem.value = problemOf(error);
      return { cpu: null, memory: null };
    }
  }
}

/** A cluster without a metrics server forbids it to users who have rights in some namespaces only. */
function problemOf(error: unknown): string | undefined {
  if (isNotFound(error)) return "this cluster has no metrics server (metrics.k8s.io)";
  if (isForbidden(error))
    return "you may not read metrics.k8s.io here, or this cluster has no metrics server";
  return undefined;
}

const samplers = new Map<string, Sampler>();

/** Samples that have been taken stay when the view is left. */
export function samplerOf(target: { namespace: string; name: string }): Sampler {
  const key = `${target.namespace}/${target.name}`;
  let sampler = samplers.get(key);
  if (!sampler) samplers.set(key, (sampler = new Sampler(target)));
  return sampler;
}
