import {
  connectionLimit,
  type Clock,
  type EndpointSlice,
  type Informer,
  type KubeClient,
  type Logger,
  type Service,
} from "@spry/kube";
import { type FrontServer } from "../http/front-server.ts";
import { listen } from "../http/listening.ts";
import { type RequestDeps } from "../request/passage.ts";
import { Certificates } from "../tls/certificates.ts";
import { createTlsServer } from "../tls/tls-server.ts";
import { ExposedHosts } from "./exposed-hosts.ts";
import { BoundedLog } from "../http/bounded-log.ts";
import { AccessChecks, type ExposureOptions } from "./exposure.ts";
import { watchExposure } from "./exposure-sources.ts";
import { type ServiceTargets } from "./service-targets.ts";

export interface ExposedDeps {
  client: KubeClient;
  targets: ServiceTargets;
  /** Indexed by `address`. */
  slices: Informer<EndpointSlice>;
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
}

interface Address {
  host: string;
  https?: { port: number; orFree?: boolean };
}

/** From the first byte of a connection to the end of its handshake. */
const handshakeTimeoutMs = 10_000;
/** Until the end of their handshakes. */
const connections = {
  total: connectionLimit(20_000, 0.15),
  ofAddress: connectionLimit(10_000, 0.1),
};

/** The hosts of APIRules, their certificates, and the listener for HTTPS. */
export function startExposed(options: ExposureOptions, deps: ExposedDeps) {
  const { targets, clock, log } = deps;
  const certificates = new Certificates(log);
  const { ownCertificates, namespace } = options;
  const hosts = new ExposedHosts({ ownCertificates });
  let services: Informer<Service> | undefined;
  const ready = watchExposure({ ...deps, namespace }, (sources) => {
    services = sources?.services;
    targets.use(sources?.services);
    hosts.use(sources);
    const [secret] = sources?.certificates.list() ?? [];
    certificates.use(secret);
    sources?.certificates.onChange(({ type, object }) =>
      certificates.use(type === "deleted" ? undefined : object),
    );
  });
  const serving: NonNullable<RequestDeps["exposure"]> = {
    hosts,
    checks: new AccessChecks(options, () => ({ services, slices: deps.slices }), clock),
    refusals: new BoundedLog(log, clock, {
      message: "request refused",
      further: "further requests were refused",
    }),
    functionHosts: options.functionHosts ?? true,
    httpsPort: undefined,
  };
  return {
    ready,
    serving,
    /** Undefined where HTTPS is not asked for. */
    async listen(front: FrontServer, { host, https }: Address) {
      if (!https) return undefined;
      const { server, close } = createTlsServer({
        certificateFor(name) {
          const found = hosts.find(name)?.host;
          return found && certificates.find(found.host, found.certificate);
        },
        accept: (socket) => front.acceptSecure(socket),
        clock,
        handshakeTimeoutMs: options.handshakeTimeoutMs ?? handshakeTimeoutMs,
        connections,
      });
      const port = await listen(server, { host, port: https.port }).catch((error: unknown) => {
        const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
        if (!https.orFree || !isTaken) throw error;
        return listen(server, { host, port: 0 });
      });
      serving.httpsPort = options.publicHttpsPort ?? port;
      return { port, close };
    },
  };
}
