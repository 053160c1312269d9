import { MetricsRegistry } from "@spry/kube";

/** What happens to events and calls, in Prometheus' format. */
export class EventingMetrics {
  readonly registry = new MetricsRegistry();
  readonly #accepted = this.registry.counter({
    name: "spry_events_accepted_total",
    help: "Events that were accepted.",
  });
  readonly #refused = this.registry.counter({
    name: "spry_events_refused_total",
    help: "Requests to publish that were refused, by status.",
  });
  readonly #deliveries = this.registry.counter({
    name: "spry_events_deliveries_total",
    help: "Attempts to deliver an event, by Subscription and outcome.",
  });
  readonly #dropped = this.registry.counter({
    name: "spry_events_dead_letters_dropped_total",
    help: "Dead letters of a Subscription that were removed because there was no room for more.",
  });
  readonly #latency = this.registry.histogram({
    name: "spry_events_delivery_seconds",
    help: "From an event's acceptance to its acknowledgement by the sink.",
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 3600],
  });
  readonly #states = {
    waiting: this.registry.gauge({
      name: "spry_events_waiting",
      help: "Events that a Subscription has not handled yet.",
    }),
    dead: this.registry.gauge({
      name: "spry_events_dead_letters",
      help: "Dead letters of a Subscription.",
    }),
    oldest: this.registry.gauge({
      name: "spry_events_oldest_seconds",
      help: "Age of the oldest event that a Subscription has not handled yet.",
    }),
  };
  readonly #bytes = this.registry.gauge({
    name: "spry_events_queue_bytes",
    help: "Size of the queue.",
  });

  accepted(count: number): void {
    for (let i = 0; i < count; i++) this.#accepted.increment({});
  }
  refused(status: number): void {
    this.#refused.increment({ status: String(status) });
  }
  attempted(key: string, outcome: "delivered" | "failed" | "dead"): void {
    this.#deliveries.increment({ ...labelsOf(key), outcome });
  }
  dropped(key: string, count: number): void {
    for (let i = 0; i < count; i++) this.#dropped.increment(labelsOf(key));
  }
  delivered(key: string, seconds: number): void {
    this.#latency.observe(labelsOf(key), seconds);
  }
  state(key: string, state: { waiting: number; dead: number; oldestSeconds: number }): void {
    const labels = labelsOf(key);
    this.#states.waiting.set(labels, state.waiting);
    this.#states.dead.set(labels, state.dead);
    this.#states.oldest.set(labels, state.oldestSeconds);
  }
  forget(key: string): void {
    for (const gauge of Object.values(this.#states)) gauge.remove(labelsOf(key));
  }
  bytes(value: number): void {
    this.#bytes.set({}, value);
  }
  render(): string {
    return this.registry.render();
  }
}

function labelsOf(key: string): { namespace: string; subscription: string } {
  const [namespace = "", subscription = ""] = key.split("/");
  return { namespace, subscription };
}
