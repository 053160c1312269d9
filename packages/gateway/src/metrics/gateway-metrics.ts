import { type ObjectKey } from "@spry/kube";

const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];
/** Beyond so many rows of a Function and a status, requests are counted under no Function's name. */
const maxRows = 10_000;

interface Row {
  labels: string;
  count: number;
  seconds: number;
  buckets: number[];
}

/** The gateway's counters, in the Prometheus text format. */
export class GatewayMetrics {
  readonly #rows = new Map<string, Row>();
  /** Requests under way, tunnels included. */
  active = 0;
  /** Requests that wait for a place at a Pod. */
  waiting = 0;
  /** Requests sent again, to another Pod or over a new connection. */
  retried = 0;

  /** Counts a request that has ended; `key` only for hosts that have a route. */
  observe(key: ObjectKey | undefined, status: number, seconds: number): void {
    const row = this.#rowOf(key ?? "/", status);
    row.count++;
    row.seconds += seconds;
    const at = buckets.findIndex((bound) => seconds <= bound);
    if (at >= 0) row.buckets[at] = (row.buckets[at] ?? 0) + 1;
  }

  render(): string {
    const name = "spry_gateway_request_duration_seconds";
    const lines = [
      ...gauge("spry_gateway_active_requests", "Requests under way.", this.active),
      ...gauge("spry_gateway_waiting_requests", "Requests waiting for a Pod.", this.waiting),
      "# HELP spry_gateway_repeated_requests_total Requests sent again, to another Pod or over a new connection.",
      "# TYPE spry_gateway_repeated_requests_total counter",
      `spry_gateway_repeated_requests_total ${this.retried}`,
      `# HELP ${name} Time from a request's head to the end of its response.`,
      `# TYPE ${name} histogram`,
    ];
    for (const row of this.#rows.values()) {
      let sum = 0;
      for (const [i, bound] of buckets.entries()) {
        sum += row.buckets[i] ?? 0;
        lines.push(`${name}_bucket{${row.labels},le="${bound}"} ${sum}`);
      }
      lines.push(`${name}_bucket{${row.labels},le="+Inf"} ${row.count}`);
      lines.push(`${name}_sum{${row.labels}} ${row.seconds}`);
      lines.push(`${name}_count{${row.labels}} ${row.count}`);
    }
    return `${lines.join("\n")}\n`;
  }

  #rowOf(key: string, status: number): Row {
    const id = `${key} ${status}`;
    const existing = this.#rows.get(id);
    if (existing) return existing;
    if (this.#rows.size >= maxRows && key !== "/") return this.#rowOf("/", status);
    const [namespace, name] = key.split("/");
    const labels = `namespace="${namespace}",function="${name}",code="${status}"`;
    const row = { labels, count: 0, seconds: 0, buckets: buckets.map(() => 0) };
    this.#rows.set(id, row);
    return row;
  }
}

function gauge(name: string, help: string, value: number): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} gauge`, `${name} ${value}`];
}
