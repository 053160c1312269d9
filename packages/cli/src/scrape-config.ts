/** A configuration with which Prometheus reads the metrics of one machine's platform. */
import path from "node:path";
import { dump } from "js-yaml";
import { localKubeconfig } from "./local-kubeconfig.ts";
import { readJson } from "./platform/data-dir.ts";
import { metricsTokenFile } from "./platform/token-files.ts";
import { startCommand } from "./shown-command.ts";
import { UserError } from "./user-error.ts";

interface MetricsEndpoints {
  metrics: string;
  gatewayMetrics: string;
}

/**
 * YAML for `scrape_configs` (prometheus.io, "Configuration"): a job for the controllers, and one for gateway and events.
 * `dataDir`: of the platform; by default that of this directory or the nearest one above it.
 * @throws UserError if no platform runs there
 */
export function scrapeConfig(dataDir: string | undefined): string {
  const kubeconfig = dataDir === undefined ? localKubeconfig(process.cwd()) : undefined;
  const root = path.resolve(dataDir ?? path.dirname(kubeconfig ?? ".spry/kubeconfig"));
  const endpoints = readJson<MetricsEndpoints>(path.join(root, "endpoints.json"));
  if (!endpoints)
    throw new UserError(
      `no platform runs with the data directory ${root}`,
      `start one with \`${startCommand()}\`, or name its directory with --data-dir`,
    );
  const job = (name: string, url: string) => ({
    job_name: name,
    authorization: { credentials_file: metricsTokenFile(root) },
    static_configs: [{ targets: [new URL(url).host] }],
  });
  const jobs = [
    job("spry-controllers", endpoints.metrics),
    job("spry-gateway", endpoints.gatewayMetrics),
  ];
  const ports =
    "# The ports stay the same if --metrics-port and --gateway-metrics-port choose them.\n";
  return ports + dump({ scrape_configs: jobs });
}
