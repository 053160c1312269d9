/** The dashboard on this machine: the platform's own, and one for a cluster of the kubeconfig. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";
import {
  buildWeb,
  readWeb,
  type Dashboard,
  type DashboardOptions,
  startDashboard,
} from "@spry/dashboard";
import { type ClusterConfig, httpsTransport, type Logger, type Transport } from "@spry/kube";
import { packagedProgram } from "../programs.ts";
import { spryCommand } from "../shown-command.ts";
import { version } from "../version.ts";
import { writeAtomically } from "./data-dir.ts";

export interface OpenDashboardOptions {
  /** Where its key is, which outlives a restart. Undefined: a key for this process alone. */
  dataDir?: string;
  host: string;
  port: number;
  /** Another port will do if it is taken. */
  orFree: boolean;
  names?: readonly string[];
  /** For users with tokens of their own: without any credential. */
  apiServer: Pick<
    ClusterConfig,
    "server" | "certificateAuthority" | "insecureSkipTlsVerify" | "tlsServerName"
  >;
  /** As the user whom a link logs in. */
  asOwner: Transport;
  /** The administration of events: its URL, and as that user there. */
  events?: { server: string; asOwner: Transport } | undefined;
  gateway?: URL | undefined;
  exposedPort?: DashboardOptions["exposedPort"];
  gatewayMetrics?: DashboardOptions["gatewayMetrics"];
  /** As `asOwner`, for WebSockets by way of the API server. */
  ownerConfig?: ClusterConfig;
  registryUsage?: DashboardOptions["registryUsage"];
  log?: Logger;
}

export const defaultDashboardPort = 8081;
const keyBytes = 32;
export const dashboardKeyName = "dashboard-key";
/** Made with the package, where Spry is one. */
const packagedWeb = packagedProgram("web");
/** Next to the bundles of the programs (bin/programs.mjs). */
const webCache = path.resolve(import.meta.dirname, "../../../../node_modules/.cache/spry");

export async function openDashboard(options: OpenDashboardOptions): Promise<Dashboard> {
  const { dataDir, port, orFree, apiServer, asOwner, ownerConfig, events, ...rest } = options;
  const withToken = (server: string) =>
    lazily(() => httpsTransport({ ...apiServer, server, namespace: "default" }));
  const start = (port: number) =>
    startDashboard({
      ...rest,
      port,
      key: dataDir === undefined ? randomBytes(keyBytes) : ensureKey(dataDir),
      access: {
        withToken: withToken(apiServer.server),
        asOwner,
        sockets: { withToken: { ...apiServer, namespace: "default" }, asOwner: ownerConfig },
      },
      events: events && { withToken: withToken(events.server), asOwner: events.asOwner },
      web: () => (packagedWeb === undefined ? buildWeb(webCache) : readWeb(packagedWeb)),
      loginCommand: spryCommand("dashboard"),
      version,
    } satisfies DashboardOptions);
  return start(port).catch((error: unknown) => {
    if (orFree && (error as NodeJS.ErrnoException).code === "EADDRINUSE") return start(0);
    throw error;
  });
}

/** Of the platform of a data directory; undefined where none has been started. */
export function readDashboardKey(dataDir: string): Buffer | undefined {
  try {
    const key = Buffer.from(
      readFileSync(path.join(dataDir, dashboardKeyName), "utf8").trim(),
      "base64url",
    );
    return key.length === keyBytes ? key : undefined;
  } catch {
    return undefined;
  }
}

function ensureKey(dataDir: string): Buffer {
  const known = readDashboardKey(dataDir);
  if (known) return known;
  const key = randomBytes(keyBytes);
  writeAtomically(path.join(dataDir, dashboardKeyName), `${key.toString("base64url")}\n`, 0o600);
  return key;
}

/** Made with the first request. */
function lazily(make: () => Transport): Transport {
  let made: Transport | undefined;
  return (request) => (made ??= make())(request);
}
