import type { Registry } from "prom-client";

/** What a work queue tells about itself. */
export interface QueueMetrics {
  depth(keys: number): void;
  added(): void;
  retried(): void;
  taken(waitedSeconds: number): void;
  done(workedSeconds: number): void;
}

/** How a pass ended, in the words of controller-runtime. */
export type PassResult = "success" | "requeue_after" | "error" | "timeout";

/** Where controllers report. A room that needs no metrics passes none and pays nothing. */
export interface ControllerMetrics {
  queue(name: string): QueueMetrics;
  reconciled(controller: string, result: PassResult, seconds: number): void;
  active(controller: string, change: 1 | -1): void;
}

export interface PrometheusMetrics extends ControllerMetrics {
  readonly registry: Registry;
  /** The text exposition format, with the process's own metrics. */
  render(): Promise<string>;
}

const workBuckets = [0.001, 0.01, 0.1, 1, 10, 60, 600];

/**
 * Metrics under the names of client-go and controller-runtime, so that existing dashboards fit. The
 * library is loaded only by this call: it costs some 20 MB of memory.
 */
export async function prometheusMetrics(): Promise<PrometheusMetrics> {
  const { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } =
    await import("prom-client").then((module) => module.default);
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const registers = [registry];
  const byName = { labelNames: ["name"] as const, registers };
  const depth = new Gauge({ name: "workqueue_depth", help: "Keys waiting.", ...byName });
  const adds = new Counter({ name: "workqueue_adds_total", help: "Keys added.", ...byName });
  const retries = new Counter({ name: "workqueue_retries_total", help: "Retries.", ...byName });
  const waits = new Histogram({
    name: "workqueue_queue_duration_seconds",
    help: "How long keys waited.",
    buckets: workBuckets,
    ...byName,
  });
  const works = new Histogram({
    name: "workqueue_work_duration_seconds",
    help: "How long keys were worked on.",
    buckets: workBuckets,
    ...byName,
  });
  const passes = new Counter({
    name: "controller_runtime_reconcile_total",
    help: "Passes by their result.",
    labelNames: ["controller", "result"],
    registers,
  });
  const errors = new Counter({
    name: "controller_runtime_reconcile_errors_total",
    help: "Passes that ended in an error.",
    labelNames: ["controller"],
    registers,
  });
  const times = new Histogram({
    name: "controller_runtime_reconcile_time_seconds",
    help: "How long passes took.",
    labelNames: ["controller"],
    registers,
  });
  const workers = new Gauge({
    name: "controller_runtime_active_workers",
    help: "Passes under way.",
    labelNames: ["controller"],
    registers,
  });
  return {
    registry,
    render: () => registry.metrics(),
    queue: (name) => ({
      depth: (keys) => depth.set({ name }, keys),
      added: () => adds.inc({ name }),
      retried: () => retries.inc({ name }),
      taken: (seconds) => waits.observe({ name }, seconds),
      done: (seconds) => works.observe({ name }, seconds),
    }),
    reconciled(controller, result, seconds) {
      passes.inc({ controller, result });
      if (result === "error" || result === "timeout") errors.inc({ controller });
      times.observe({ controller }, seconds);
    },
    active: (controller, change) => workers.inc({ controller }, change),
  };
}
