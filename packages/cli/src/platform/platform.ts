/**
 * The composition root of the embedded platform: wires the rooms of one machine together, in the
 * order in which they need each other, and takes them down in reverse.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import path from "node:path";
import {
  type ApiServer,
  type ApiServerOptions,
  createApiServer,
  DamagedStoreError,
} from "@spry/apiserver";
import {
  Liveness,
  Remarks,
  type RegistryAccess,
  startServerlessController,
  watchConfiguration,
} from "@spry/controller";
import { startSubscriptions } from "@spry/eventing";
import { startExposure } from "@spry/exposure";
import { RegistryClient } from "@spry/image";
import {
  httpsTransport,
  KubeClient,
  measuredTransport,
  messageOf,
  prometheusMetrics,
  resources,
  systemClock,
  type Transport,
} from "@spry/kube";
import { createNode, type MachineNode, startControllers } from "@spry/machine";
import { keepServing } from "@spry/serving";
import { type LeveledLogger } from "../logger.ts";
import { type SandboxKind } from "../sandbox-kinds.ts";
import { UserError } from "../user-error.ts";
import { version } from "../version.ts";
import { subjects } from "./certificate-subjects.ts";
import { ensureCertificates } from "./certificates.ts";
import { controllerConfig } from "./controller-config.ts";
import { defaultDashboardPort, openDashboard } from "./dashboard.ts";
import { type DataDir, writeAtomically } from "./data-dir.ts";
import { gatewayDrain } from "./gateway-drain.ts";
import { ensureCountsToken } from "./counts-token.ts";
import { startGatewayProcess } from "./gateway-process.ts";
import {
  controllerIdentity,
  type Identity,
  nodeIdentity,
  nodeName,
  registryIdentity,
} from "./identities.ts";
import { openHostAuthority } from "./host-authority.ts";
import { collectWhenIdle } from "./idle-memory.ts";
import { kubeconfigFor } from "./kubeconfig.ts";
import { npmCli } from "./npm-cli.ts";
import { writeNpmSettings } from "./npm-settings.ts";
import { writePipSettings } from "./pip-settings.ts";
import { openRegistry } from "./registry.ts";
import { openSandbox } from "./sandbox.ts";
import { startPushServer } from "../push-server.ts";
import { callerAddresses, gatewayAddressing } from "./gateway-addressing.ts";
import { remarkOwnership } from "../serving-remark.ts";
import { createServingWebhooks } from "../serving-webhooks.ts";
import { ensureSystemImages } from "./system-images.ts";
import { applySystemObjects, systemNamespace } from "./system-objects.ts";
import { ensureDefaultGateway } from "./default-gateway.ts";
import { remarkEventingOwner } from "../eventing-remark.ts";
import { remarkDefinitionOwner } from "../exposure-remark.ts";
import { announcePublisher } from "./publisher-service.ts";
import { startStatusServer } from "../status-server.ts";
import { useConfiguration } from "../use-configuration.ts";
import { createDigestResolver } from "./image-digests.ts";
import { startWebhookServer } from "./webhook-server.ts";
import { spryCommand, startCommand } from "../shown-command.ts";

export interface PlatformOptions {
  dataDir: DataDir;
  apiPort: number;
  gatewayPort: number;
  /** Undefined: 8443, or a free one if that is taken. */
  httpsPort?: number | undefined;
  /** Undefined: 8082, or a free one if that is taken. */
  publisherPort?: number | undefined;
  webhookPort: number;
  registryPort: number;
  /** Undefined: 8081, or a free one if that is taken. */
  dashboardPort?: number | undefined;
  /** What the registry may hold, in bytes. */
  registryQuota: number;
  sandbox: SandboxKind;
  log: LeveledLogger;
}

/** What `endpoints.json` holds: URLs, and the platform's process. */
export interface Endpoints {
  apiServer: string;
  gateway: string;
  /** HTTPS, of hosts of APIRules. */
  gatewayTls: string;
  registry: string;
  /** CloudEvents are published by `POST <URL>/publish`. */
  publisher: string;
  /** Dead letters, calls and replay: docs/rooms/eventing.md. */
  events: string;
  /** Git servers send pushes to `<URL>/git/<namespace>`. */
  webhooks: string;
  /** `<URL>/metrics` of the controllers, `/healthz`, `/readyz`; and the same of the gateway. */
  metrics: string;
  gatewayMetrics: string;
  dashboard: string;
  pid: number;
}

export interface Platform {
  readonly endpoints: Endpoints;
  readonly client: KubeClient;
  /** Which sandbox has been chosen, what it keeps apart, and why there is no stronger one: a sentence. */
  readonly sandbox: string;
  /** A link that logs its first visitor in to the dashboard. */
  dashboardLogin(): string;
  /** Ends everything in good order, Functions included. */
  stop(): Promise<void>;
}

const host = "127.0.0.1";
/** As the kubeconfig's certificate says, and what authentication adds. */
const ownerGroups = [...subjects.admin.organisations, "system:authenticated"];
const defaultHttpsPort = 8443;
const defaultPublisherPort = 8082;
/** The host in image names: it stays the same when the registry's port changes. */
const pullAddress = "registry.spry.localhost";

export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { dataDir, log } = options;
  const running = new AbortController();
  const teardown: (() => Promise<void> | void)[] = [];
  const stop = async () => {
    for (const step of teardown.splice(0).reverse()) {
      try {
        await step();
      } catch (error) {
        log.error({ error }, "stopping");
      }
    }
  };
  try {
    // The API server asks nodes for logs, and is there before the first of them.
    const nodes = new Map<string, MachineNode>();
    const kubelet = (name: string): Transport | undefined => nodes.get(name)?.kubelet;

    const issued = ensureCertificates(dataDir.pki);
    const [certificates, api] = await Promise.all([
      issued,
      openApiServer(dataDir, {
        log: log.child({ room: "apiserver" }),
        kubelet,
        rootCa: issued.then(({ ca }) => ca),
      }),
    ]);
    teardown.push(() => api.close());
    const client = new KubeClient(api.transport(), { fieldManager: "spry" });
    const clientOf = ({ name, groups }: Identity) =>
      new KubeClient(api.transport({ name, groups }), { fieldManager: "spry" });
    const ownRegistry = await openRegistry(dataDir, {
      client: clientOf(registryIdentity),
      administrator: client,
      quotaBytes: options.registryQuota,
      log: log.child({ room: "registry" }),
    });
    teardown.push(() => ownRegistry.close());

    const [apiListener, registry] = await Promise.all([
      occupying("API server", options.apiPort, "--api-port", (port) =>
        api.listen({ host, port, ...certificates.apiServer, clientCa: certificates.ca }),
      ),
      occupying("registry", options.registryPort, "--registry-port", (port) =>
        ownRegistry.listen({ host, port }),
      ),
    ]);
    teardown.push(() => apiListener.close());
    teardown.push(() => registry.close());

    const npmConfig = path.join(dataDir.root, "npmrc");
    const pipConfig = path.join(dataDir.root, "pip.conf");
    const { sandbox, sentence } = await openSandbox(options.sandbox, {
      dataDir: dataDir.node,
      npmCli: npmCli(),
      npmConfig,
      pipConfig,
      log: log.child({ room: "sandbox" }),
    });
    teardown.push(() => sandbox.close());

    const controllerClient = clientOf(controllerIdentity);
    const apiServer = `https://${host}:${apiListener.port}`;
    const registryUrl = `http://${host}:${registry.port}`;
    const access: RegistryAccess = {
      logins: ownRegistry.logins,
      pullAddress,
      // A Pod with a network of its own finds the registry under the same name elsewhere.
      pushAddress: `${sandbox.hostAddress === host ? host : pullAddress}:${registry.port}`,
    };
    const { logins } = ownRegistry;
    const own = { url: registryUrl, ...logins.platform() };
    await Promise.all([sandbox.offer(registry.port), sandbox.offer(apiListener.port)]);

    // The gateway is another process: it starts while everything else here is prepared.
    const gatewayKubeconfig = path.join(dataDir.root, "gateway.kubeconfig");
    const credentials = { server: apiServer, ca: certificates.ca };
    writeAtomically(
      gatewayKubeconfig,
      kubeconfigFor({ ...credentials, user: "gateway", client: certificates.gateway }),
      0o600,
    );
    const counts = ensureCountsToken(dataDir.root);
    const { httpsPort, publisherPort } = options;
    const startGateway = async () => {
      await applySystemObjects(client);
      const process = await occupying("gateway", options.gatewayPort, "--gateway-port", (port) =>
        startGatewayProcess({
          dataDir: dataDir.root,
          logFile: path.join(dataDir.logs, "gateway.log"),
          kubeconfig: gatewayKubeconfig,
          countsTokenFile: counts.file,
          host,
          port,
          https: { port: httpsPort ?? defaultHttpsPort, orFree: httpsPort === undefined },
          eventing: {
            directory: path.join(dataDir.root, "events"),
            host,
            port: publisherPort ?? defaultPublisherPort,
            orFree: publisherPort === undefined,
            adminPort: 0,
            pki: dataDir.pki,
          },
          callerAddresses: callerAddresses(sandbox),
          fingerprint: [
            version,
            apiServer,
            hashOf(certificates.gateway.cert),
            hashOf(counts.token),
            hashOf(certificates.events.cert),
            sandbox.hostAddress,
          ].join(" "),
          log,
        }),
      );
      teardown.push(() => process.stop());
      return process;
    };
    const imagesMade = ensureSystemImages(
      new RegistryClient({ resolve: (name) => (name === pullAddress ? own : undefined) }),
      {
        pullAddress,
        scratch: path.join(dataDir.root, "scratch"),
        knownFile: path.join(dataDir.root, "system-images.json"),
        log,
      },
    );
    const [gateway, images] = await settled(startGateway(), imagesMade);
    await sandbox.offer(gateway.publisherPort);

    const metrics = prometheusMetrics();
    let isReady = false;
    const liveness = new Liveness();
    const status = await startStatusServer({
      host,
      port: 0,
      isReady: () => isReady,
      stuck: () => liveness.stuck(),
      metrics,
    });
    teardown.push(() => status.close());
    const config = controllerConfig(images);
    const webhook = await startWebhookServer({
      administrator: client,
      client: controllerClient,
      config,
      serving: createServingWebhooks(
        controllerClient,
        log.child({ room: "serving" }),
        running.signal,
        client,
      ),
      host,
      certificate: certificates.webhook,
      ca: certificates.ca,
    });
    teardown.push(() => webhook.close());
    await ensureDefaultGateway(client);

    void writeNpmSettings(npmConfig, log);
    writePipSettings(pipConfig, log);
    const node = createNode({
      client: clientOf(nodeIdentity),
      name: nodeName,
      dataDir: dataDir.node,
      sandbox,
      drained: gatewayDrain({
        url: `http://${host}:${gateway.adminPort}`,
        token: counts.token,
      }),
      mirrors: { [pullAddress]: { url: registryUrl, ...logins.node() } },
      pinned: images.digests,
      apiServer: { host, port: apiListener.port },
      log: log.child({ room: "node" }),
    });
    nodes.set(nodeName, node);
    const remarks = new Remarks();
    const work = [
      startControllers({
        client,
        rootCa: certificates.ca,
        log: log.child({ room: "machine" }),
        signal: running.signal,
      }),
      startServerlessController({
        client: controllerClient.through((transport) => measuredTransport(transport, metrics)),
        config,
        metrics,
        liveness,
        internalRegistry: access,
        remarks,
        log: log.child({ room: "controller" }),
        signal: running.signal,
      }),
      announcePublisher({
        client,
        endpoint: { address: sandbox.hostAddress, port: gateway.publisherPort },
        log: log.child({ room: "eventing" }),
        signal: running.signal,
      }),
      startExposure({
        client: controllerClient,
        namespace: systemNamespace,
        ownCertificates: true,
        authority: openHostAuthority(dataDir.pki),
        onOwner: (owner) => remarkDefinitionOwner(remarks, owner),
        log: log.child({ room: "exposure" }),
        signal: running.signal,
      }),
      startSubscriptions({
        client: controllerClient,
        onOwner: (owner) => remarkEventingOwner(remarks, owner),
        log: log.child({ room: "eventing" }),
        signal: running.signal,
      }),
      keepServing({
        client: controllerClient,
        gateways: () => [`http://${host}:${gateway.adminPort}`],
        countsToken: () => counts.token,
        callers: gatewayAddressing(sandbox, gateway),
        domain: { name: "localhost", port: gateway.port },
        resolveDigest: createDigestResolver({ [pullAddress]: { url: own.url } }, systemClock),
        onOwnership(ownership) {
          remarkOwnership(remarks, ownership);
          webhook.configureServing().catch((error: unknown) => {
            log.error({ error: messageOf(error) }, "configuring the webhooks of Knative Serving");
          });
        },
        log: log.child({ room: "serving" }),
        signal: running.signal,
      }),
      watchConfiguration({
        client: controllerClient,
        config,
        onChange: (current) => {
          webhook.use(current.config);
          useConfiguration(current, { log, liveness });
        },
        log,
        signal: running.signal,
      }),
      ownRegistry.keepClean({ config, signal: running.signal }),
      node.run(running.signal),
    ];
    teardown.push(async () => {
      await node.stop({ pods: "stop" });
      running.abort();
      await Promise.allSettled(work);
    });
    void collectWhenIdle(running.signal);
    for (const one of work)
      one.catch((error: unknown) => log.error({ error }, "a part of the platform ended"));

    const pushes = await occupying("Git webhooks", options.webhookPort, "--webhook-port", (port) =>
      startPushServer({ client: controllerClient, host, port, log: log.child({ room: "git" }) }),
    );
    teardown.push(() => pushes.close());
    const dashboard = await occupying(
      "dashboard",
      options.dashboardPort ?? defaultDashboardPort,
      "--dashboard-port",
      (port) =>
        openDashboard({
          dataDir: dataDir.root,
          host,
          port,
          orFree: options.dashboardPort === undefined,
          apiServer: { server: apiServer, certificateAuthority: certificates.ca },
          asOwner: api.transport({ name: subjects.admin.commonName, groups: ownerGroups }),
          events: {
            server: `https://${host}:${gateway.eventsPort}`,
            asOwner: httpsTransport({
              server: `https://${host}:${gateway.eventsPort}`,
              namespace: "default",
              certificateAuthority: certificates.ca,
              clientCertificate: certificates.admin.cert,
              clientKey: certificates.admin.key,
            }),
          },
          gateway: new URL(`http://localhost:${gateway.port}`),
          gatewayMetrics: () => `http://${host}:${gateway.adminPort}/metrics`,
          log: log.child({ room: "dashboard" }),
        }),
    );
    teardown.push(() => dashboard.close());
    await nodeReady(client);
    isReady = true;
    const endpoints: Endpoints = {
      apiServer,
      gateway: `http://localhost:${gateway.port}`,
      gatewayTls: `https://localhost:${gateway.httpsPort}`,
      registry: registryUrl,
      publisher: `http://${host}:${gateway.publisherPort}`,
      events: `https://${host}:${gateway.eventsPort}`,
      webhooks: `http://${host}:${pushes.port}`,
      metrics: `http://${host}:${status.port}`,
      gatewayMetrics: `http://${host}:${gateway.adminPort}`,
      dashboard: dashboard.url,
      pid: process.pid,
    };
    writeAtomically(
      dataDir.kubeconfig,
      kubeconfigFor({
        ...credentials,
        user: "admin",
        client: certificates.admin,
        gateway: endpoints.gateway,
        gatewayTls: endpoints.gatewayTls,
        registry: endpoints.registry,
        publisher: endpoints.publisher,
        events: endpoints.events,
      }),
      0o600,
    );
    return {
      endpoints,
      client,
      sandbox: sentence,
      dashboardLogin: () => dashboard.loginUrl(),
      stop,
    };
  } catch (error) {
    running.abort();
    await stop();
    throw error;
  }
}

/** A store that is damaged or gone is for a person to deal with: an empty one in its place would delete all. */
async function openApiServer(
  dataDir: DataDir,
  options: Omit<ApiServerOptions, "dataDir">,
): Promise<ApiServer> {
  const wayOut = `put a backup in its place with \`${spryCommand(`restore --force --data-dir ${dataDir.root} FILE`)}\`, or start with another directory`;
  const isLost = existsSync(dataDir.kubeconfig) && !existsSync(path.join(dataDir.api, "state.db"));
  if (isLost) throw new UserError(`the store ${dataDir.api}/state.db is missing`, wayOut);
  try {
    return await createApiServer({ dataDir: dataDir.api, ...options });
  } catch (error) {
    if (error instanceof DamagedStoreError) throw new UserError(error.message, wayOut);
    throw error;
  }
}

/** Waits for all, also when one fails, so that nothing goes on behind a clean-up. */
async function settled<A, B>(first: Promise<A>, second: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([first, second]);
  return Promise.all([first, second]);
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

/** Turns "port in use" into a sentence that names the port, what wanted it and the flag that changes it. */
async function occupying<T>(
  what: string,
  port: number,
  flag: string,
  listen: (port: number) => Promise<T>,
): Promise<T> {
  try {
    return await listen(port);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE" || /EADDRINUSE/.test(String(error))) {
      throw new UserError(
        `port ${port} for the ${what} is in use by another program`,
        `stop that program, or choose another port: ${startCommand(`${flag} ${port + 1}`)} (0 takes any free one)`,
      );
    }
    if (code === "EACCES") {
      throw new UserError(
        `port ${port} for the ${what} needs privileges`,
        `choose one above 1023 with ${flag}`,
      );
    }
    throw error;
  }
}

async function nodeReady(client: KubeClient): Promise<void> {
  const isReady = (conditions: { type: string; status: string }[] | undefined) =>
    conditions?.some(({ type, status }) => type === "Ready" && status === "True");
  const list = await client.list(resources.nodes);
  if (list.items.some((node) => isReady(node.status?.conditions))) return;
  const events = client.watch(resources.nodes, {
    resourceVersion: list.metadata.resourceVersion ?? "",
    signal: AbortSignal.timeout(30_000),
  });
  for await (const { object } of events) if (isReady(object.status?.conditions)) return;
  throw new Error("the node did not become ready");
}
