/** HTTPS for the API server's requests of administration; its certificate, and the API server's, may change meanwhile. */
import { type RequestListener } from "node:http";
import { createServer, type Server } from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import { type TLSSocket } from "node:tls";
import { type FrontProxy, frontProxyIn } from "@spry/eventing";
import {
  boundConnections,
  Informer,
  type KubeClient,
  type Logger,
  messageOf,
  resources,
  type Secret,
} from "@spry/kube";
import { administrationPort, administrationService } from "../install/administration.ts";
import { type Listening, listening } from "../listening.ts";
import { certificateIn, type WebhookCertificate } from "./webhook-certificate.ts";

/** The API server keeps few open. Of one address: one API server of several, or any Pod, which is not authorized. */
const connectionLimits = { total: 256, ofAddress: 64 };
const handshakeTimeout = 5_000;
const lookAgainMs = 600_000;
const retryMs = 5_000;
const authentication = { namespace: "kube-system", name: "extension-apiserver-authentication" };

export interface AdministrationServer {
  /** Whose requests are answered; undefined until the API server's ConfigMap has been read. */
  readonly frontProxy: () => FrontProxy | undefined;
  /** Listens as soon as there is a certificate. */
  start(listener: RequestListener): void;
  /** Resolves with why it cannot listen. */
  readonly failed: Promise<Error>;
  close(): Promise<void>;
}

export function administrationServer(options: {
  client: KubeClient;
  namespace: string;
  log: Logger;
  /** For tests. */
  port?: number;
}): AdministrationServer {
  const { client, namespace, log, port = administrationPort } = options;
  const failed = Promise.withResolvers<Error>();
  const stop = new AbortController();
  let proxy: FrontProxy | undefined;
  let certificate: WebhookCertificate | undefined;
  let server: Server | undefined;
  let listens: Promise<Listening | undefined> | undefined;
  let listener: RequestListener | undefined;

  const use = () => {
    if (!proxy || !certificate || !listener) return;
    const { cert, key } = certificate;
    const tls = { cert, key, ca: proxy.ca, minVersion: "TLSv1.2", handshakeTimeout } as const;
    if (server) return server.setSecureContext(tls);
    server = createServer({ ...tls, requestCert: true, rejectUnauthorized: false }, listener);
    bound(server);
    listens = listening(server, { host: "0.0.0.0", port }).catch((error: unknown) => {
      const why = `the administration of events cannot listen at port ${port}: ${messageOf(error)}`;
      failed.resolve(new Error(why, { cause: error }));
      return undefined;
    });
  };
  const secrets = new Informer<Secret>(client, resources.secrets, {
    namespace,
    fieldSelector: `metadata.name=${administrationService}`,
    log,
  });
  secrets.onChange(({ type, object }) => {
    certificate = (type === "deleted" ? undefined : certificateIn(object)) ?? certificate;
    use();
  });
  const lookAtProxy = async () => {
    while (!stop.signal.aborted) {
      let again = lookAgainMs;
      try {
        const { data } = await client.get(resources.configMaps, authentication);
        const found = frontProxyIn(data);
        if (!found) throw new Error("this API server has no aggregation layer");
        proxy = found;
        use();
      } catch (error) {
        again = proxy ? lookAgainMs : retryMs;
        log.warn({ error: messageOf(error) }, "the administration of events is not served yet");
      }
      await pause(again, undefined, { signal: stop.signal }).catch(() => {});
    }
  };
  const working = [secrets.run(stop.signal), lookAtProxy()];
  return {
    frontProxy: () => proxy,
    failed: failed.promise,
    start(given) {
      listener = given;
      use();
    },
    async close() {
      stop.abort();
      await (await listens)?.close();
      await Promise.allSettled(working);
    },
  };
}

/** Every Pod reaches the port: only a client with a certificate of the API server's authority keeps a connection. */
function bound(server: Server): void {
  boundConnections(server, connectionLimits);
  server.prependListener("secureConnection", (socket: TLSSocket) => {
    if (!socket.authorized) socket.destroy();
  });
  server.on("tlsClientError", (_error, socket) => socket.destroy());
}
