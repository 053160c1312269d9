/** A platform for tests: a real API server in memory, our webhooks over HTTPS, and the reconciler on it. */
import { createServer } from "node:https";
import { type AddressInfo } from "node:net";
import { createApiServer } from "@spry/apiserver";
import { type ApiRule, apiRules, type IstioGateway, istioGateways } from "@spry/function";
import {
  httpsTransport,
  KubeClient,
  type KubeObject,
  loadKubeconfig,
  type Logger,
  resources,
  silentLogger,
  type Transport,
} from "@spry/kube";
import { certificateFor, type KeyPair } from "@spry/test-kit";
import { exposableFrom } from "../routes/service-address.ts";
import { ensureDefinitions, exposureWebhooks, startExposure } from "../index.ts";

export const systemNamespace = "kyma-system";

/** The embedded one; or a real one that this variable has a kubeconfig of (docs/contributing/real-apiserver.md), which keeps what is made. */
async function openApiServer(): Promise<{ transport: Transport; close: () => Promise<void> }> {
  const kubeconfig = process.env["SPRY_TEST_REAL_APISERVER"];
  if (kubeconfig)
    return { transport: httpsTransport(loadKubeconfig(kubeconfig)), close: async () => {} };
  const api = await createApiServer({ dataDir: ":memory:" });
  return { transport: api.transport(), close: () => api.close() };
}

export class TestPlatform implements AsyncDisposable {
  readonly client: KubeClient;
  /** Warnings and errors of the log. */
  readonly troubles: string[] = [];
  /** Who serves APIRules, as the reconciler has found out. */
  readonly owners: string[] = [];
  readonly #close: (() => Promise<void> | void)[] = [];

  static async start(options: { before?: (client: KubeClient) => Promise<void> } = {}) {
    const { transport, close } = await openApiServer();
    const platform = new TestPlatform(new KubeClient(transport, { fieldManager: "test" }));
    platform.#close.push(close);
    const caBundle = await platform.#serveWebhooks();
    await options.before?.(platform.client);
    await ensureDefinitions(platform.client, caBundle);
    platform.#run();
    await platform.namespace(systemNamespace);
    return platform;
  }

  private constructor(client: KubeClient) {
    this.client = client;
  }

  async #serveWebhooks() {
    const { crt, key } = await certificateFor("127.0.0.1");
    const server = createServer({ cert: crt, key }, (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { url = "", method = "" } = request;
        const init = { method, body: Buffer.concat(chunks) };
        void exposureWebhooks
          .answers(new Request(`https://webhook${url}`, init))
          ?.then(async (answer) => response.writeHead(answer.status).end(await answer.text()));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    this.#close.push(() => {
      server.close();
      server.closeAllConnections();
    });
    const { port } = server.address() as AddressInfo;
    return { caBundle: Buffer.from(crt).toString("base64"), url: `https://127.0.0.1:${port}` };
  }

  #run(): void {
    const stop = new AbortController();
    const note = (fields: object, message: string) =>
      void this.troubles.push(`${message} ${JSON.stringify(fields)}`);
    const log: Logger = { ...silentLogger, warn: note, error: note, child: () => log };
    const ended = startExposure({
      client: this.client,
      namespace: systemNamespace,
      ownCertificates: true,
      onOwner: (owner) => this.owners.push(owner),
      log,
      signal: stop.signal,
    });
    this.#close.push(async () => {
      stop.abort();
      await ended;
    });
  }

  async namespace(name: string): Promise<void> {
    await this.client.apply(resources.namespaces, { metadata: { name } });
  }

  /** From which namespaces the next Services may be exposed. */
  exposable = "";

  async service(namespace: string, name: string, ...ports: number[]): Promise<void> {
    await this.namespace(namespace);
    await this.client.apply(resources.services, {
      metadata: { name, namespace, annotations: { [exposableFrom]: this.exposable } },
      spec: { ports: ports.map((port) => ({ port, name: `p${port}` })) },
    });
  }

  /** HTTPS for these hosts, and plain HTTP that redirects. */
  async gateway(key: string, host: string, tls: object = {}): Promise<void> {
    const [namespace = "", name = ""] = key.split("/");
    await this.namespace(namespace);
    const secured = { number: 443, name: "https", protocol: "HTTPS" };
    const plain = { number: 80, name: "http", protocol: "HTTP" };
    const spec: IstioGateway["spec"] = {
      servers: [
        { port: secured, hosts: [host], tls: { mode: "SIMPLE", ...tls } },
        { port: plain, hosts: [host], tls: { httpsRedirect: true } },
      ],
    };
    await this.client.apply(istioGateways, { metadata: { name, namespace }, spec });
  }

  async certificate(key: string, pair: Partial<KeyPair>): Promise<void> {
    const [namespace = "", name = ""] = key.split("/");
    await this.namespace(namespace);
    const base64 = (text = "") => Buffer.from(text).toString("base64");
    await this.client.apply(resources.secrets, {
      metadata: { name, namespace },
      type: "kubernetes.io/tls",
      data: { "tls.crt": base64(pair.crt), "tls.key": base64(pair.key) },
    });
  }

  /** As `kubectl apply` does with an object of any version. */
  async apply(object: KubeObject): Promise<KubeObject> {
    const [group = "", version = ""] = (object.apiVersion ?? "").split("/");
    const { kind = "" } = object;
    const plural = `${kind.toLowerCase()}s`;
    const resource = { group, version, kind, plural, namespaced: true };
    const { namespace = "default" } = object.metadata;
    await this.namespace(namespace);
    return this.client.apply(resource, {
      ...object,
      metadata: { ...object.metadata, namespace },
    });
  }

  /** `State: description`, once the reconciler has written one. */
  async statusOf(namespace: string, name: string): Promise<string | undefined> {
    const { status } = await this.client.get<ApiRule>(apiRules, { namespace, name });
    return status && `${status.state}: ${status.description}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#close.reverse()) await close();
  }
}
