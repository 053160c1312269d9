import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo } from "node:net";
import { type Duplex } from "node:stream";
import {
  boundConnections,
  connectionLimit,
  type Logger,
  messageOf,
  silentLogger,
} from "@spry/kube";
import { type Access } from "./access.ts";
import { type ReadGatewayMetrics } from "./function-metrics.ts";
import { type OidcOptions } from "./oidc.ts";
import { type ReadRegistryUsage } from "./registry-usage.ts";
import { Sessions } from "./sessions.ts";
import { type WebFiles } from "./web-files.ts";

export interface DashboardOptions {
  host: string;
  /** 0 picks a free one. */
  port: number;
  access: Access;
  /** The same for the administration of events. Absent: it is an API of the API server's. */
  events?: Access | undefined;
  /** 32 random bytes that only the owner of the data directory can read: logins are signed with them. */
  key: Buffer;
  /** What the keys of users' drafts are derived from, where it must outlive `key`. */
  draftSecret?: (() => Promise<string | undefined>) | undefined;
  /** The page's files; called with the first request. */
  web: () => Promise<WebFiles>;
  /** Where Functions are called: the gateway. Without one they are called through the API server. */
  gateway?: URL | undefined;
  /** Where the hosts of APIRules are served with HTTPS, if not at its own port. */
  exposedPort?: (() => number) | undefined;
  /** Reads what the gateways have counted. Absent: there is none. */
  gatewayMetrics?: ReadGatewayMetrics | undefined;
  /** What the platform's own registry stores. Absent: its page shows what the API server knows. */
  registryUsage?: ReadRegistryUsage | undefined;
  /** Further host names by which browsers reach this server. */
  names?: readonly string[];
  /** Users may log in at this provider. */
  oidc?: OidcOptions | undefined;
  /** The command that prints a link, as users of this installation write it. */
  loginCommand?: string;
  /** The time in which a request with its body must arrive. */
  requestTimeoutMs?: number;
  /** Shown on the page. */
  version: string;
  log?: Logger;
}

export interface Dashboard {
  readonly port: number;
  readonly url: string;
  /** A link that logs its first visitor in as the owner. */
  loginUrl(): string;
  close(): Promise<void>;
}

/** The time in which a request's head must arrive, and the whole request. */
const headTimeoutMs = 10_000;
const defaultRequestTimeoutMs = 120_000;
const connectionLimits = {
  total: connectionLimit(500, 0.1),
  ofAddress: connectionLimit(400, 0.08),
};

/** Opens the port. Its code is loaded with the first request: a platform whose page is never opened does not pay for it. */
export async function startDashboard(options: DashboardOptions): Promise<Dashboard> {
  const { log = silentLogger, requestTimeoutMs = defaultRequestTimeoutMs } = options;
  const sessions = new Sessions(options.key);
  const closing = new AbortController();
  const load = () =>
    import("./app.ts").then(({ App }) => new App(options, sessions, closing.signal));
  let loading: ReturnType<typeof load> | undefined;
  const app = () => (loading ??= load());
  const server = createServer(
    {
      headersTimeout: Math.min(headTimeoutMs, requestTimeoutMs),
      requestTimeout: requestTimeoutMs,
      connectionsCheckingInterval: Math.min(headTimeoutMs, requestTimeoutMs),
    },
    (request, response) => {
      app()
        .then((loaded) => loaded.answer(request, response))
        .catch((error: unknown) => {
          log.error({ error: messageOf(error) }, "answering a request to the dashboard");
          if (!response.headersSent) response.writeHead(500);
          response.end();
        });
    },
  );
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    app()
      .then((loaded) => loaded.upgrade(request, socket, head))
      .catch((error: unknown) => {
        log.error({ error: messageOf(error) }, "opening a connection of the dashboard");
        socket.destroy();
      });
  });
  boundConnections(server, connectionLimits);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.off("error", reject);
      // Of a connection that could not be accepted, for want of a descriptor: the next one may be.
      server.on("error", () => {});
      resolve();
    });
  });
  const { port } = server.address() as AddressInfo;
  // An address, not a name: another user's program could listen for the code at another address of the same name.
  const url = `http://${options.host.includes(":") ? `[${options.host}]` : options.host}:${port}`;
  return {
    port,
    url,
    loginUrl: () => `${url}/#code=${sessions.issueCode()}`,
    close: () =>
      new Promise((resolve) => {
        closing.abort();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
