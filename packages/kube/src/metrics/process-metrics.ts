import { type MetricsRegistry } from "./registry.ts";

/** The process metrics of every Prometheus client library, under the same names. */
export function defineProcessMetrics(registry: MetricsRegistry): void {
  const startedAt = Date.now() / 1000 - process.uptime();
  const gauge = (name: string, help: string, read: () => number) =>
    registry.ask("gauge", { name, help }, read);
  registry.ask(
    "counter",
    { name: "process_cpu_seconds_total", help: "User and system processor time, in seconds." },
    () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  );
  gauge("process_start_time_seconds", "Start of the process since the epoch.", () => startedAt);
  gauge("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
  gauge(
    "nodejs_heap_size_used_bytes",
    "Used bytes of the JavaScript heap.",
    () => process.memoryUsage().heapUsed,
  );
}
