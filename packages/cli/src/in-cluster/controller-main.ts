/**
 * Program: the controller in a cluster. Every replica answers the webhooks; one leads, which is the one that
 * runs the Serverless and the Function Controller, and renews the webhooks' certificate.
 */
import {
  createAdmission,
  Liveness,
  Remarks,
  startServerlessController,
  watchConfiguration,
  type ControllerConfig,
} from "@spry/controller";
import { administrationStandIn, eventingWebhooks, startSubscriptions } from "@spry/eventing";
import { exposureWebhooks, startExposure } from "@spry/exposure";
import { defaultPresetsForNodes } from "@spry/function";
import { createLogins } from "@spry/image";
import {
  httpsTransport,
  Informer,
  KubeClient,
  loadKubeconfig,
  measuredTransport,
  type PrometheusMetrics,
  prometheusMetrics,
  resources,
  runAsLeader,
  systemClock,
  type Secret,
} from "@spry/kube";
import { keepServing } from "@spry/serving";
import { createLogger } from "../logger.ts";
import { type ControllerEnvironment, controllerEnvironment } from "./environment.ts";
import { remarkEventingOwner, remarkPublisher } from "../eventing-remark.ts";
import { keepAdministration } from "./administration-keeper.ts";
import { ensureNatsToken } from "./eventing-token.ts";
import { keepNatsServers } from "./nats-keeper.ts";
import { keepPublisherService } from "./publisher-service.ts";
import { ensureCountsToken } from "./counts-token.ts";
import { ensureUsageToken } from "./usage-token.ts";
import { GatewayPods } from "./gateway-pods.ts";
import { installedImages } from "./installed-images.ts";
import { ensureRegistryKey } from "./registry-key.ts";
import { leaveMs, runProgram, untilAborted } from "./program.ts";
import { startPushServer } from "../push-server.ts";
import { remarkOwnership } from "../serving-remark.ts";
import { createDigestResolver } from "../image-digests.ts";
import { createServingWebhooks } from "../serving-webhooks.ts";
import { startStatusServer } from "../status-server.ts";
import { useConfiguration } from "../use-configuration.ts";
import { remarkDefinitionOwner } from "../exposure-remark.ts";
import { certificateIn, webhookSecretName } from "./webhook-certificate.ts";
import { keepWebhooks } from "./webhook-keeper.ts";
import { startWebhookServer, type WebhookServer } from "./webhook-server.ts";

const leaseName = "serverless-controller-leader-election-helper";
const ports = { webhook: 8443, metrics: 8080, health: 8090, git: 8082 };

const log = createLogger({ name: "controller" });

void runProgram(log, async (signal) => {
  const environment = controllerEnvironment(process.env);
  const { namespace, identity } = environment;
  const metrics = prometheusMetrics();
  const transport = measuredTransport(httpsTransport(loadKubeconfig()), metrics);
  const client = new KubeClient(transport, { fieldManager: "spry" });
  const config = await installedConfig(client, environment);

  const pushServer = await startPushServer({ client, host: "0.0.0.0", port: ports.git, log });
  let server: WebhookServer | undefined;
  const isReady = () => server !== undefined;
  const liveness = new Liveness();
  const stuck = () => liveness.stuck();
  const metricsServer = await startStatusServer({ port: ports.metrics, isReady, metrics });
  const healthServer = await startStatusServer({ port: ports.health, isReady, stuck });

  const secrets = new Informer<Secret>(client, resources.secrets, {
    namespace,
    fieldSelector: `metadata.name=${webhookSecretName}`,
    log,
  });
  let admission = createAdmission(config, client);
  const serving = createServingWebhooks(client, log, signal);
  secrets.onChange(({ type, object }) => {
    const certificate = type === "deleted" ? undefined : certificateIn(object);
    if (!certificate) return;
    if (server) return server.use(certificate);
    server = startWebhookServer({
      port: ports.webhook,
      certificate,
      answer: (request) =>
        serving.answers(request) ??
        exposureWebhooks.answers(request) ??
        eventingWebhooks.answers(request) ??
        administrationStandIn.answers(request) ??
        admission.fetch(request),
      log,
    });
  });
  const watching = [
    secrets.run(signal),
    watchConfiguration({
      client,
      config,
      log,
      signal,
      onChange: (current) => {
        admission = createAdmission(current.config, client);
        useConfiguration(current, { log, liveness });
      },
    }),
  ];

  // Meanwhile it finishes what it has begun, and gives its lease back.
  const left = untilAborted(signal).then(() => server?.leave(leaveMs));
  metrics.leads(leaseName, false);
  await runAsLeader(
    {
      client,
      namespace,
      name: leaseName,
      identity,
      log,
      onChange: (leads) => metrics.leads(leaseName, leads),
    },
    (leading, fenced) =>
      lead({ client: fenced, environment, config, metrics, liveness, signal: leading }),
    signal,
  );
  await Promise.all(watching);
  await left;
  await pushServer.close();
  await metricsServer.close();
  await healthServer.close();
});

async function lead(options: {
  client: KubeClient;
  environment: ControllerEnvironment;
  config: ControllerConfig;
  metrics: PrometheusMetrics;
  liveness: Liveness;
  signal: AbortSignal;
}): Promise<void> {
  const { client, environment, signal, ...rest } = options;
  const { namespace, registry, eventing } = environment;
  // First: the registry's Pod waits for its key, and starts with the token then.
  await ensureUsageToken(client, namespace);
  const access = { ...registry, logins: createLogins(await ensureRegistryKey(client, namespace)) };
  const gateways = new GatewayPods(client, namespace, log);
  const remarks = new Remarks();
  await Promise.all([
    keepWebhooks({ client, namespace, eventing, log, signal }),
    ...(eventing ? [leadEventing({ client, namespace, remarks, signal })] : []),
    startServerlessController({ client, ...rest, internalRegistry: access, remarks, log, signal }),
    gateways.run(signal),
    startExposure({
      client,
      namespace,
      ownCertificates: false,
      onOwner: (owner) => remarkDefinitionOwner(remarks, owner),
      log: log.child({ room: "exposure" }),
      metrics: rest.metrics,
      signal,
    }),
    keepServing({
      client,
      gateways: () => gateways.adminUrls,
      countsToken: () => ensureCountsToken(client, namespace),
      callers: { kind: "port", addresses: () => gateways.addresses },
      domain: { name: "svc.cluster.local" },
      resolveDigest: createDigestResolver({
        client,
        plain: () => [...environment.plainRegistries],
        authority: environment.registryAuthority || undefined,
        clock: systemClock,
      }),
      onOwnership: (ownership) => remarkOwnership(remarks, ownership),
      log,
      signal,
    }),
  ]);
}

/** What belongs to events, besides the programs that accept and deliver them. */
async function leadEventing(options: {
  client: KubeClient;
  namespace: string;
  remarks: Remarks;
  signal: AbortSignal;
}): Promise<void> {
  const { client, namespace, remarks, signal } = options;
  const common = { client, log: log.child({ room: "eventing" }), signal };
  await ensureNatsToken(client, namespace);
  await Promise.all([
    keepAdministration({ ...common, namespace }),
    keepNatsServers({ ...common, namespace, remarks }),
    startSubscriptions({ ...common, onOwner: (owner) => remarkEventingOwner(remarks, owner) }),
    keepPublisherService({
      ...common,
      namespace,
      onForeign: (isForeign) => remarkPublisher(remarks, isForeign),
    }),
  ]);
}

/** What the Deployment says, and the defaults for a cluster of this size. */
async function installedConfig(
  client: KubeClient,
  {
    images,
    namespace,
    imagePullSecrets,
    plainRegistries,
    registryAuthority,
    buildEnvironment,
  }: ControllerEnvironment,
): Promise<ControllerConfig> {
  const { items: nodes } = await client.list(resources.nodes);
  const presets = defaultPresetsForNodes(nodes.length);
  return {
    ...installedImages(images),
    baseNamespace: namespace,
    imagePullSecrets,
    plainRegistries,
    registryAuthority,
    buildEnvironment,
    defaultFunctionPreset: presets.function,
    defaultBuildPreset: presets.build,
  };
}
