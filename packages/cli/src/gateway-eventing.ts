/** Events in the gateway's process, on one machine. */
import { readFileSync } from "node:fs";
import { type Server } from "node:http";
import { createServer } from "node:https";
import path from "node:path";
import { startEventing } from "@spry/eventing";
import { type CallAcceptor } from "@spry/gateway";
import { type KubeClient, type Logger } from "@spry/kube";
import { openSqliteQueue } from "@spry/queue";
import { listening } from "./listening.ts";
import { systemNamespace } from "./platform/system-objects.ts";
import { queueProgram } from "./programs.ts";
import { watchTraceEndpoint } from "./trace-endpoint.ts";

/** What the platform passes to the gateway, as JSON in the environment. */
export interface EventingSettings {
  /** Where the queue is. */
  directory: string;
  host: string;
  /** Of the publisher. */
  port: number;
  /** If it is in use, another one is chosen. */
  orFree: boolean;
  /** Of the administration; 0 for any free one. */
  adminPort: number;
  /** Where its certificate is, and the authority of its clients'. */
  pki: string;
}

export const eventingVariable = "SPRY_EVENTING";

export interface GatewayEventing {
  readonly publisherPort: number;
  readonly adminPort: number;
  /** For the gateway. */
  readonly calls: CallAcceptor;
  /** In Prometheus' format. */
  readonly metrics: () => string;
  close(): Promise<void>;
}

export async function startGatewayEventing(
  text: string,
  client: KubeClient,
  log: Logger,
): Promise<GatewayEventing> {
  const settings = JSON.parse(text) as EventingSettings;
  const workerFile = queueProgram();
  const stop = new AbortController();
  const eventing = startEventing({
    client,
    traceEndpoint: watchTraceEndpoint(client, systemNamespace, log, stop.signal),
    openQueue: () =>
      openSqliteQueue({
        directory: settings.directory,
        log,
        ...(workerFile === undefined ? {} : { workerFile }),
      }),
    allowPrivate: true,
    log: log.child({ room: "eventing" }),
  });
  const publisher = await listenOrFree(eventing.publisher, settings);
  const pem = (name: string) => readFileSync(path.join(settings.pki, name), "utf8");
  const tls = { cert: pem("events.crt"), key: pem("events.key"), ca: pem("ca.crt") };
  const adminServer = createServer(
    { ...tls, minVersion: "TLSv1.2", requestCert: true, rejectUnauthorized: false },
    eventing.admin,
  );
  const admin = await listening(adminServer, { host: settings.host, port: settings.adminPort });
  return {
    publisherPort: publisher.port,
    adminPort: admin.port,
    calls: eventing.calls,
    metrics: () => eventing.metrics.render(),
    async close() {
      stop.abort();
      await admin.close();
      await publisher.close();
      await eventing.close();
    },
  };
}

async function listenOrFree(server: Server, { host, port, orFree }: EventingSettings) {
  try {
    return await listening(server, { host, port });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EADDRINUSE") throw error;
    // Without the code: it is not the gateway's own port.
    if (!orFree)
      throw new Error(
        `port ${port} for events is in use by another program: choose another one with --publisher-port`,
        { cause: error },
      );
    return listening(server, { host, port: 0 });
  }
}
