import { type MetricsRegistry } from "@spry/kube";
import { type Sandbox } from "@spry/machine";

/** What waits for Functions at zero, and how often that helped; nothing where the sandbox keeps no warm processes. */
export function defineWarmMetrics(registry: MetricsRegistry, sandbox: Sandbox): void {
  if (!sandbox.warmFigures?.()) return;
  const define = (
    type: "gauge" | "counter",
    figure: "waiting" | "used" | "missed",
    name: string,
    help: string,
  ) => registry.ask(type, { name, help }, () => sandbox.warmFigures?.()?.[figure] ?? 0);
  define("gauge", "waiting", "spry_warm_processes", "Runtimes that wait for a Function.");
  define(
    "counter",
    "used",
    "spry_warm_starts_total",
    "Pods of Functions from zero that took a waiting runtime over.",
  );
  define(
    "counter",
    "missed",
    "spry_warm_starts_missed_total",
    "Pods of Functions from zero for which no runtime waited.",
  );
}
