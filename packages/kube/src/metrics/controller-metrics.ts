import { defineProcessMetrics } from "./process-metrics.ts";
import { MetricsRegistry } from "./registry.ts";

/** A work queue's metrics. */
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
  /** For a controller's additional metrics. */
  readonly registry: MetricsRegistry;
  queue(name: string): QueueMetrics;
  reconciled(controller: string, result: PassResult, seconds: number): void;
  active(controller: string, change: 1 | -1): void;
}

/** The metrics of a process that runs controllers. */
export interface PrometheusMetrics extends ControllerMetrics {
  /** A request to the API server, by its method and the answer's status, or `<error>`. */
  requested(method: string, code: string, seconds: number): void;
  /** Whether this process leads, by the Lease's name. */
  leads(lease: string, leads: boolean): void;
  /** The text exposition format, with the process's own metrics. */
  render(): string;
}

const workBuckets = [0.001, 0.01, 0.1, 1, 10, 60, 600];

/** Metrics under the names of client-go and controller-runtime, so that existing dashboards fit. */
export function prometheusMetrics(): PrometheusMetrics {
  const registry = new MetricsRegistry();
  defineProcessMetrics(registry);
  const depth = registry.gauge({ name: "workqueue_depth", help: "Keys that wait in the queue." });
  const adds = registry.counter({ name: "workqueue_adds_total", help: "Keys added to the queue." });
  const retries = registry.counter({ name: "workqueue_retries_total", help: "Retries." });
  const waits = registry.histogram({
    name: "workqueue_queue_duration_seconds",
    help: "Time that keys waited in the queue.",
    buckets: workBuckets,
  });
  const works = registry.histogram({
    name: "workqueue_work_duration_seconds",
    help: "Processing time of keys.",
    buckets: workBuckets,
  });
  const passes = registry.counter({
    name: "controller_runtime_reconcile_total",
    help: "Reconcile passes by result.",
  });
  const errors = registry.counter({
    name: "controller_runtime_reconcile_errors_total",
    help: "Reconcile passes that failed.",
  });
  const times = registry.histogram({
    name: "controller_runtime_reconcile_time_seconds",
    help: "Duration of reconcile passes.",
  });
  const workers = registry.gauge({
    name: "controller_runtime_active_workers",
    help: "Reconcile passes in progress.",
  });
  const requests = registry.counter({
    name: "rest_client_requests_total",
    help: "Requests to the API server by method and status.",
  });
  const requestTimes = registry.histogram({
    name: "rest_client_request_duration_seconds",
    help: "Time until the API server's response headers, by verb.",
  });
  const leaders = registry.gauge({
    name: "leader_election_master_status",
    help: "1 for the replica that leads, 0 for the others.",
  });
  return {
    registry,
    render: () => registry.render(),
    queue: (name) => ({
      depth: (keys) => depth.set({ name }, keys),
      added: () => adds.increment({ name }),
      retried: () => retries.increment({ name }),
      taken: (seconds) => waits.observe({ name }, seconds),
      done: (seconds) => works.observe({ name }, seconds),
    }),
    reconciled(controller, result, seconds) {
      passes.increment({ controller, result });
      if (result === "error" || result === "timeout") errors.increment({ controller });
      times.observe({ controller }, seconds);
    },
    active: (controller, change) => workers.add({ controller }, change),
    requested(method, code, seconds) {
      requests.increment({ method, code });
      requestTimes.observe({ verb: method }, seconds);
    },
    leads: (name, leads) => leaders.set({ name }, leads ? 1 : 0),
  };
}
