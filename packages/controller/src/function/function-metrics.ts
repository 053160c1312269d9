import { type ConditionType, type Function } from "@spry/function";
import {
  type Clock,
  type Gauge,
  keyOf,
  type Labels,
  type MetricsRegistry,
  type ObjectKey,
} from "@spry/kube";
import { conditionOf } from "./conditions.ts";

const buckets = [0.1, 0.3, 1, 3, 10, 30, 90, 300];

/** A Function as metrics know it. */
interface Followed {
  uid: string;
  generation: number;
  /** When this generation was created; unknown for one that existed before this process. */
  since: number | undefined;
  labels: Labels;
}

/**
 * Metrics about Functions, by the contract's names (docs/compatibility.md#metrics): those of its image mode (the time from
 * creation to each condition, once per Function) and of its buildless mode. A gauge is removed with its Function.
 */
export class FunctionMetrics {
  static readonly #made = new WeakMap<MetricsRegistry, FunctionMetrics>();

  /** Of this registry, for each controller that is started on it, one after the other. */
  static of(registry: MetricsRegistry): FunctionMetrics {
    const metrics = this.#made.get(registry) ?? new FunctionMetrics(registry);
    this.#made.set(registry, metrics);
    return metrics;
  }

  readonly #gauges: Readonly<Record<ConditionType, Gauge>>;
  readonly #processed;
  readonly #passes;
  readonly #passTimes;
  readonly #reached;
  readonly #followed = new Map<ObjectKey, Followed>();

  private constructor(registry: MetricsRegistry) {
    const gauge = (state: string) =>
      registry.gauge({
        name: `function_${state}_status_duration_millisecond`,
        help: `Time from a Function's creation until it is ${state}, for its first generation.`,
      });
    this.#gauges = {
      ConfigurationReady: gauge("configured"),
      BuildReady: gauge("built"),
      Running: gauge("running"),
    };
    this.#processed = registry.counter({
      name: "serverless_function_processed_total",
      help: "Functions, each counted once.",
    });
    this.#passes = registry.counter({
      name: "serverless_function_reconciliations_total",
      help: "Reconcile passes over Functions.",
    });
    this.#passTimes = registry.histogram({
      name: "serverless_function_reconciliation_time_seconds",
      help: "Duration of a reconcile pass.",
      buckets,
    });
    this.#reached = registry.histogram({
      name: "serverless_function_state_reach_time_seconds",
      help: "Time from a new generation until its condition is True.",
      buckets,
    });
  }

  /** A pass has ended. `before` is what it began with, `after` what it wrote, if it did. */
  passed(before: Function, after: Function | undefined, seconds: number, clock: Clock): void {
    const followed = this.#follow(before, clock);
    const kind = kindOf(before);
    this.#passes.increment(kind);
    this.#passTimes.observe(kind, seconds);
    if (after) this.#tellNews(before, after, followed, clock);
  }

  /** The Function is gone. */
  forget(key: ObjectKey): void {
    const followed = this.#followed.get(key);
    if (!followed) return;
    for (const gauge of Object.values(this.#gauges)) gauge.remove(followed.labels);
    this.#followed.delete(key);
  }

  #follow(fn: Function, clock: Clock): Followed {
    const { uid = "", generation = 0, name = "", namespace = "" } = fn.metadata;
    const key = keyOf(fn);
    const known = this.#followed.get(key);
    if (known?.uid === uid && known.generation === generation) return known;
    if (known && known.uid !== uid) this.forget(key);
    if (known?.uid !== uid) this.#processed.increment(kindOf(fn));
    const { runtime, source } = kindOf(fn);
    const isNew = generation === 1 || known?.uid === uid;
    const since = generation === 1 ? createdAt(fn) : clock.now();
    const labels = known?.uid === uid ? known.labels : { name, namespace, type: source, runtime };
    const followed = { uid, generation, since: isNew ? since : undefined, labels };
    this.#followed.set(key, followed);
    return followed;
  }

  #tellNews(before: Function, after: Function, followed: Followed, clock: Clock): void {
    const { generation, since, labels } = followed;
    const holds = (fn: Function, type: ConditionType) => {
      const condition = conditionOf(fn.status ?? {}, type);
      return condition?.status === "True" && condition.observedGeneration === generation;
    };
    for (const type of Object.keys(this.#gauges) as ConditionType[]) {
      if (!holds(after, type) || holds(before, type) || since === undefined) continue;
      const passedMs = Math.max(0, clock.now() - since);
      this.#reached.observe({ ...kindOf(before), state: type }, passedMs / 1000);
      if (generation === 1) this.#gauges[type].set(labels, passedMs);
    }
  }
}

function createdAt({ metadata }: Function): number {
  return Date.parse(metadata.creationTimestamp ?? "");
}

function kindOf({ spec }: Function): { runtime: string; source: "git" | "inline" } {
  const source = spec.source.gitRepository ? "git" : "inline";
  return { runtime: spec.runtime ?? "", source };
}
