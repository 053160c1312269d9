import path from "node:path";
import { codeProof } from "@spry/dashboard";
import { httpsTransport, messageOf } from "@spry/kube";
import { connect, type GlobalOptions, loadConfig, namedKubeconfig } from "../connection.ts";
import { eventsExtension } from "../platform/kubeconfig.ts";
import { openLogin } from "../open-browser.ts";
import { assertWrittenHere, isLoopback } from "../local-kubeconfig.ts";
import {
  dashboardKeyName,
  defaultDashboardPort,
  openDashboard,
  readDashboardKey,
} from "../platform/dashboard.ts";
import { isRunning, readJson } from "../platform/data-dir.ts";
import { remoteGatewayMetrics } from "../remote-gateway-metrics.ts";
import { UserError } from "../user-error.ts";

export interface DashboardCommandOptions extends GlobalOptions {
  dataDir: string;
  port?: number;
  open: boolean;
}

/** Prints a link to the running platform's dashboard; for any other cluster, serves one until Ctrl-C. */
export async function dashboard(options: DashboardCommandOptions): Promise<void> {
  const own = await platformLink(path.resolve(options.dataDir), options);
  if (own !== undefined) return show(own, options);
  const config = loadConfig(options);
  const { gateway, events } = await connect(options);
  const eventsUrl = eventsUrlOf(config);
  const transport = httpsTransport(config);
  const { server, certificateAuthority, insecureSkipTlsVerify, tlsServerName } = config;
  const served = await openDashboard({
    host: "127.0.0.1",
    port: options.port ?? defaultDashboardPort,
    orFree: options.port === undefined,
    apiServer: {
      server,
      ...(certificateAuthority !== undefined && { certificateAuthority }),
      ...(insecureSkipTlsVerify !== undefined && { insecureSkipTlsVerify }),
      ...(tlsServerName !== undefined && { tlsServerName }),
    },
    asOwner: transport,
    ownerConfig: config,
    // A cluster without a gateway that this machine reaches: its Pods are asked.
    ...(!gateway && { gatewayMetrics: remoteGatewayMetrics }),
    ...(events && eventsUrl && { events: { server: eventsUrl, asOwner: events } }),
    gateway,
  }).catch((error: unknown) => {
    throw new UserError(
      `the dashboard could not be started: ${messageOf(error)}`,
      "choose another port with --port (0 takes any free one)",
    );
  });
  const ended = new Promise((resolve) => {
    for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, resolve);
  });
  show(served.loginUrl(), options);
  console.error(`This is the dashboard for ${server}, as the kubeconfig's user. Ctrl-C stops it.`);
  await ended;
  transport.close();
  await served.close();
  process.exit(0);
}

/** A link from the platform of this data directory, if it runs and is the one that the command is about. */
async function platformLink(
  dataDir: string,
  { kubeconfig }: GlobalOptions,
): Promise<string | undefined> {
  const chosen = kubeconfig || namedKubeconfig();
  const isOurs = chosen === undefined || path.resolve(chosen) === path.join(dataDir, "kubeconfig");
  const endpoints = readJson<{ dashboard?: string }>(path.join(dataDir, "endpoints.json"));
  const key = readDashboardKey(dataDir);
  if (!isOurs || !isRunning(dataDir) || !key || !endpoints?.dashboard) return undefined;
  // A repository may contain such a directory, and the link is opened in a browser.
  assertWrittenHere(path.join(dataDir, dashboardKeyName));
  const { hostname } = new URL(endpoints.dashboard);
  if (!isLoopback(hostname))
    throw new UserError(
      `${path.join(dataDir, "endpoints.json")} names a dashboard at ${hostname}, which is not this machine`,
      "name the platform's data directory with --data-dir, or its kubeconfig with --kubeconfig",
    );
  const response = await fetch(`${endpoints.dashboard}/login/code`, {
    method: "POST",
    body: JSON.stringify({ proof: codeProof(key) }),
    signal: AbortSignal.timeout(10_000),
  });
  const { code, message } = (await response.json()) as { code?: string; message?: string };
  if (code === undefined) throw new UserError(`the dashboard gives no link: ${message}`);
  return `${endpoints.dashboard}/#code=${code}`;
}

function show(url: string, { open }: DashboardCommandOptions): void {
  console.log(url);
  if (open)
    openLogin(url, () => console.error("a browser could not be started: open the address above"));
}

function eventsUrlOf({ extensions }: ReturnType<typeof loadConfig>): string | undefined {
  const { url } = (extensions?.[eventsExtension] ?? {}) as { url?: string };
  return url === undefined ? undefined : new URL(url).origin;
}
