/**
 * Program: the dashboard in a cluster. Its Pod has no token: every request carries its user's own, from
 * `kubectl create token` or from the identity provider.
 */
import { randomBytes } from "node:crypto";
import path from "node:path";
import { readWeb, startDashboard } from "@spry/dashboard";
import { type RegistryUsage } from "@spry/function";
import { httpsTransport } from "@spry/kube";
import { createLogger } from "../logger.ts";
import { dashboardEnvironment } from "./dashboard-environment.ts";
import { gatewayMetricsBehind } from "./gateway-metrics.ts";
import { runProgram, untilAborted } from "./program.ts";
import { readUsageToken, usageTokenFile } from "./usage-token.ts";

const log = createLogger({ name: "dashboard" });
const port = 8080;
const keyBytes = 32;
const usageTimeoutMs = 30_000;

void runProgram(log, async (signal) => {
  const environment = dashboardEnvironment(process.env);
  const { apiServer, url, oidc, gatewayPods, registryUsage } = environment;
  const config = { ...apiServer, namespace: "default" };
  const transport = httpsTransport(config);
  const files = readWeb(process.env["SPRY_WEB_DIR"] ?? path.join("/opt/spry", "web"));
  const server = await startDashboard({
    host: process.env["SPRY_DASHBOARD_HOST"] ?? "0.0.0.0",
    port: Number(process.env["SPRY_DASHBOARD_PORT"] ?? port),
    // It is not possible to log in by a link here.
    key: randomBytes(keyBytes),
    // All replicas have it, and it stays.
    draftSecret: () => readUsageToken(),
    access: { withToken: transport, sockets: { withToken: config } },
    ...(gatewayPods !== undefined && { gatewayMetrics: gatewayMetricsBehind(gatewayPods) }),
    ...(registryUsage !== undefined && { registryUsage: () => usageAt(registryUsage) }),
    names: url ? [url.hostname] : [],
    oidc,
    web: () => files,
    version: process.env["SPRY_VERSION"] ?? "",
    log,
  });
  await files;
  log.info({ port: server.port }, "the dashboard listens");
  await untilAborted(signal);
  await server.close();
  transport.close();
});

async function usageAt(url: string): Promise<RegistryUsage> {
  const token = await readUsageToken();
  if (token === undefined)
    throw new Error(`${usageTokenFile} does not exist yet: the controller makes its Secret`);
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${token}` },
    redirect: "error",
    signal: AbortSignal.timeout(usageTimeoutMs),
  });
  if (!response.ok) throw new Error(`the registry responded with ${response.status}`);
  return (await response.json()) as RegistryUsage;
}
