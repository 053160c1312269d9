/**
 * The composition root of the embedded platform: wires the rooms of one machine together, in the
 * order in which they need each other, and takes them down in reverse.
 */
import path from "node:path";
import { Liveness } from "@spry/controller";
import { RegistryClient } from "@spry/image";
import { type HostPort, type KubeClient, prometheusMetrics, resources } from "@spry/kube";
import { createNode, type MachineNode, type Sandbox } from "@spry/machine";
import { type LeveledLogger } from "../logger.ts";
import { startPushServer } from "../push-server.ts";
import { type PodSecurityLevel } from "../pod-security-levels.ts";
import { type SandboxKind } from "../sandbox-kinds.ts";
import { createServingWebhooks } from "../serving-webhooks.ts";
import { startStatusServer } from "../status-server.ts";
import { type Certificates } from "./certificates.ts";
import { controllerConfig } from "./controller-config.ts";
import { type DataDir, writeAtomically } from "./data-dir.ts";
import { defineDescriptorMetrics, watchDescriptors } from "./descriptors.ts";
import { ensureDefaultGateway } from "./default-gateway.ts";
import { type Foundation, host, openFoundation, pullAddress } from "./foundation.ts";
import { startGateway } from "./gateway.ts";
import { gatewayDrain } from "./gateway-drain.ts";
import { type GatewayProcess } from "./gateway-process.ts";
import { controllerIdentity, nodeIdentity, nodeName } from "./identities.ts";
import { collectWhenIdle } from "./idle-memory.ts";
import { kubeconfigFor } from "./kubeconfig.ts";
import { requestsInLog } from "./last-words.ts";
import { keepLogsSmall } from "./log-files.ts";
import { npmCli } from "./npm-cli.ts";
import { writeNpmSettings } from "./npm-settings.ts";
import { writePipSettings } from "./pip-settings.ts";
import { OwnPorts } from "./own-ports.ts";
import { openPlatformDashboard } from "./platform-dashboard.ts";
import { occupying } from "./port-in-use.ts";
import { startParts } from "./running-parts.ts";
import { type ChosenSandbox, openSandbox } from "./sandbox.ts";
import { ShippedRuntimes } from "./shipped-runtimes.ts";
import { ensureSystemImages, type MadeImages, type SystemImages } from "./system-images.ts";
import { applySystemObjects } from "./system-objects.ts";
import { Teardown } from "./teardown.ts";
import { ensureCountsToken, ensureMetricsToken, type TokenFile } from "./token-files.ts";
import { defineWarmMetrics } from "./warm-metrics.ts";
import { startWebhookServer, type WebhookServer } from "./webhook-server.ts";

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
  /** Host names by which a proxy reaches the dashboard, in lower case. */
  dashboardHost?: readonly string[] | undefined;
  /** Of `/metrics`, `/healthz` and `/readyz` of the controllers, and of the gateway; 0: any free one. */
  metricsPort: number;
  gatewayMetricsPort: number;
  /** What the registry may hold, in bytes. */
  registryQuota: number;
  /** What all Kubernetes objects may take, in bytes. Undefined: what the heap allows. */
  storeQuota?: number | undefined;
  sandbox: SandboxKind;
  /** Of namespaces that have no label for it. */
  podSecurity: PodSecurityLevel;
  /** How many warm processes may wait, where the sandbox has them. */
  warm: number;
  /** False: Functions, their definitions and webhooks are left to another controller. */
  controller: boolean;
  /** Servers on this machine that tenants may have the platform call: registries, issuers of tokens. */
  allowedLoopback: readonly HostPort[];
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
  /** Dead letters, calls and replay: docs/contributing/rooms/eventing.md. */
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
  /** A sentence when more Kubernetes objects are stored than may be. */
  readonly storeProblem: string | undefined;
  /** A sentence for each port that a Pod had taken. */
  readonly takenPorts: readonly string[];
  /** A link that logs its first visitor in to the dashboard. */
  dashboardLogin(): string;
  /** Ends everything in good order, Functions included. */
  stop(): Promise<void>;
}

export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  const { dataDir, log } = options;
  const running = new AbortController();
  const deciding = new AbortController();
  const teardown = new Teardown(log);
  try {
    const ports = new OwnPorts(dataDir.node, log);
    const foundation = await openFoundation(options, teardown, ports);
    const { certificates, client, registryUrl } = foundation;
    const scratch = path.join(dataDir.root, "runtimes-scratch");
    const shipped = new ShippedRuntimes(scratch, log);
    const { sandbox, sentence } = await openNodeSandbox(options, { foundation, shipped, teardown });
    const counts = ensureCountsToken(dataDir.root);
    const metricsToken = ensureMetricsToken(dataDir.root);
    // The gateway is another process: it starts while everything else here is prepared.
    const startsGateway = applySystemObjects(client, { withDefinitions: options.controller }).then(
      () => startGateway(options, { foundation, sandbox, counts, metricsToken, teardown, ports }),
    );
    const registry = ownRegistry(foundation);
    const [gateway, images] = await settled(startsGateway, madeImages(options, registry));
    const { runtimes, builder, builders } = images;
    shipped.use(registry, [...Object.values(runtimes), builder, ...Object.values(builders)]);
    await sandbox.offer(gateway.publisherPort);

    const metrics = prometheusMetrics();
    defineWarmMetrics(metrics.registry, sandbox);
    defineDescriptorMetrics(metrics.registry);
    const liveness = new Liveness();
    let isReady = false;
    const listenStatus = (port: number) =>
      startStatusServer({
        host,
        port,
        isReady: () => isReady,
        stuck: () => liveness.stuck(),
        metrics,
        metricsToken: metricsToken.token,
      });
    const { metricsPort } = options;
    const status = await occupying("metrics", metricsPort, "--metrics-port", listenStatus, ports);
    teardown.add(() => status.close());
    const webhook = await openWebhooks(options, { foundation, images, signal: running.signal });
    teardown.add(() => webhook.close());
    await ensureDefaultGateway(client);

    const node = openNode(options, { foundation, sandbox, images, gateway, counts });
    const work = startParts({
      foundation,
      dataDir,
      sandbox,
      node,
      gateway,
      counts,
      webhook,
      images,
      metrics,
      liveness,
      withController: options.controller,
      allowedLoopback: options.allowedLoopback,
      log,
      controllerSignal: deciding.signal,
      signal: running.signal,
    });
    teardown.add(async () => {
      // Builds that end with their Pods have not failed.
      deciding.abort();
      await node.stop({ pods: "stop" });
      running.abort();
      await Promise.allSettled(work);
    });
    void collectWhenIdle(running.signal);
    void watchDescriptors(log, running.signal);
    void keepLogsSmall(dataDir.logs, log, running.signal);
    for (const one of work)
      one.catch((error: unknown) =>
        log.error({ error }, "a component of the platform ended unexpectedly"),
      );

    const pushes = await openPushes(options, foundation, ports);
    teardown.add(() => pushes.close());
    const dashboard = await openPlatformDashboard(options, {
      foundation,
      gateway,
      metricsToken,
      ports,
    });
    teardown.add(() => dashboard.close());
    await nodeReady(client);
    isReady = true;
    const endpoints: Endpoints = {
      apiServer: foundation.apiServer,
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
    writeKubeconfig(dataDir, endpoints, certificates);
    return {
      endpoints,
      client,
      sandbox: sentence,
      storeProblem: foundation.api.storeProblem,
      takenPorts: ports.remarks,
      dashboardLogin: () => dashboard.loginUrl(),
      stop: () => teardown.run(),
    };
  } catch (error) {
    deciding.abort();
    running.abort();
    await teardown.run();
    throw error;
  }
}

const npmConfigOf = (dataDir: DataDir) => path.join(dataDir.root, "npmrc");
const pipConfigOf = (dataDir: DataDir) => path.join(dataDir.root, "pip.conf");

/** The sandbox in which Pods run; they reach the API server and the registry from it. */
async function openNodeSandbox(
  { dataDir, sandbox: kind, warm, log }: PlatformOptions,
  {
    foundation,
    shipped,
    teardown,
  }: { foundation: Foundation; shipped: ShippedRuntimes; teardown: Teardown },
): Promise<ChosenSandbox> {
  const chosen = await openSandbox(kind, {
    dataDir: dataDir.node,
    npmCli: npmCli(),
    npmConfig: npmConfigOf(dataDir),
    pipConfig: pipConfigOf(dataDir),
    warm: { max: warm, isShipped: (digest) => shipped.has(digest) },
    log: log.child({ room: "sandbox" }),
  });
  const { sandbox } = chosen;
  teardown.add(() => sandbox.close());
  await Promise.all([sandbox.offer(foundation.registryPort), sandbox.offer(foundation.apiPort)]);
  return chosen;
}

function ownRegistry({ registryUrl, registry }: Foundation): RegistryClient {
  const own = { url: registryUrl, ...registry.logins.platform() };
  return new RegistryClient({ resolve: (name) => (name === pullAddress ? own : undefined) });
}

function madeImages({ dataDir, log }: PlatformOptions, registry: RegistryClient) {
  return ensureSystemImages(registry, {
    pullAddress,
    scratch: path.join(dataDir.root, "scratch"),
    knownFile: path.join(dataDir.root, "system-images.json"),
    log,
  });
}

function openWebhooks(
  { log, controller }: PlatformOptions,
  parts: { foundation: Foundation; images: SystemImages; signal: AbortSignal },
): Promise<WebhookServer> {
  const { certificates, client, clientOf } = parts.foundation;
  const controllerClient = clientOf(controllerIdentity);
  return startWebhookServer({
    administrator: client,
    client: controllerClient,
    config: controllerConfig(parts.images),
    ofFunctions: controller,
    serving: createServingWebhooks(
      controllerClient,
      log.child({ room: "serving" }),
      parts.signal,
      client,
    ),
    host,
    certificate: certificates.webhook,
    ca: certificates.ca,
  });
}

function openNode(
  { dataDir, allowedLoopback, log }: PlatformOptions,
  parts: {
    foundation: Foundation;
    sandbox: Sandbox;
    images: MadeImages;
    gateway: GatewayProcess;
    counts: TokenFile;
  },
): MachineNode {
  const { foundation, sandbox, images, gateway, counts } = parts;
  void writeNpmSettings(npmConfigOf(dataDir), log);
  writePipSettings(pipConfigOf(dataDir), log);
  const administration = {
    url: () => `http://${host}:${gateway.adminPort}`,
    token: counts.token,
  };
  const node = createNode({
    client: foundation.clientOf(nodeIdentity),
    name: nodeName,
    dataDir: dataDir.node,
    sandbox,
    drained: gatewayDrain(administration),
    lastWords: requestsInLog(administration),
    mirrors: {
      [pullAddress]: { url: foundation.registryUrl, ...foundation.registry.logins.node() },
    },
    allowedLoopback,
    pinned: images.digests,
    apiServer: { host, port: foundation.apiPort },
    log: log.child({ room: "node" }),
  });
  foundation.addNode(nodeName, node);
  return node;
}

function openPushes(
  { webhookPort, log }: PlatformOptions,
  { clientOf }: Foundation,
  ports: OwnPorts,
) {
  const client = clientOf(controllerIdentity);
  return occupying(
    "Git webhooks",
    webhookPort,
    "--webhook-port",
    (port) => startPushServer({ client, host, port, log: log.child({ room: "git" }) }),
    ports,
  );
}

/** For kubectl, and for this machine's `spry`. */
function writeKubeconfig(dataDir: DataDir, endpoints: Endpoints, issued: Certificates): void {
  const { apiServer: server, gateway, gatewayTls, registry, publisher, events } = endpoints;
  const own = { server, ca: issued.ca, user: "admin", client: issued.admin };
  const text = kubeconfigFor({ ...own, gateway, gatewayTls, registry, publisher, events });
  writeAtomically(dataDir.kubeconfig, text, 0o600);
}

/** Waits for all, also when one fails, so that nothing continues behind a clean-up. */
async function settled<A, B>(first: Promise<A>, second: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([first, second]);
  return Promise.all([first, second]);
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
  throw new Error("the node did not become ready within 30 s");
}
