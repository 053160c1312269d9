/**
 * Program: the dashboard in a cluster. Its Pod has no token: every request carries its user's own, from
 * `kubectl create token` or from the identity provider.
 */
import { randomBytes } from "node:crypto";
import path from "node:path";
import { readWeb, startDashboard } from "@spry/dashboard";
import { httpsTransport } from "@spry/kube";
import { createLogger } from "../logger.ts";
import { dashboardEnvironment } from "./dashboard-environment.ts";
import { runProgram, untilAborted } from "./program.ts";

const log = createLogger({ name: "dashboard" });
const port = 8080;
const keyBytes = 32;

void runProgram(log, async (signal) => {
  const { apiServer, url, oidc } = dashboardEnvironment(process.env);
  const transport = httpsTransport({ ...apiServer, namespace: "default" });
  const files = readWeb(process.env["SPRY_WEB_DIR"] ?? path.join("/opt/spry", "web"));
  const server = await startDashboard({
    host: process.env["SPRY_DASHBOARD_HOST"] ?? "0.0.0.0",
    port: Number(process.env["SPRY_DASHBOARD_PORT"] ?? port),
    // There are no logins by link here.
    key: randomBytes(keyBytes),
    access: { withToken: transport },
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
