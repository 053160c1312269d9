/** The admission webhooks of the embedded platform: real HTTPS on loopback, as on a cluster. */
import { createServer } from "node:https";
import {
  admissionConfigurations,
  type ControllerConfig,
  conversionConfiguration,
  createAdmission,
  webhookClientConfig,
  type WebhookLocation,
} from "@spry/controller";
import { ensureEventingDefinitions, eventingWebhooks } from "@spry/eventing";
import { ensureDefinitions, exposureWebhooks } from "@spry/exposure";
import {
  boundConnections,
  isNotFound,
  type KubeClient,
  type KubeObject,
  type Resource,
  resources,
} from "@spry/kube";
import { listening } from "../listening.ts";
import { configureServingWebhooks, type ServingWebhooks } from "../serving-webhooks.ts";
import { answerWith, webhookConnections } from "../webhook-requests.ts";
import { type KeyPair } from "./certificates.ts";

export interface WebhookServer {
  use(config: ControllerConfig): void;
  /** The owner of Knative Serving has changed. */
  configureServing(): Promise<void>;
  close(): Promise<void>;
}

export async function startWebhookServer(options: {
  /** Registers the webhooks at the API server. */
  administrator: KubeClient;
  /** What the webhooks themselves look at objects with. */
  client: KubeClient;
  config: ControllerConfig;
  /** False: the webhooks of Functions are another controller's. */
  ofFunctions?: boolean;
  serving: ServingWebhooks;
  host: string;
  certificate: KeyPair;
  /** PEM of the authority that signed the certificate. */
  ca: string;
}): Promise<WebhookServer> {
  let admission = createAdmission(options.config, options.client);
  const server = createServer(
    options.certificate,
    answerWith(
      (request) =>
        options.serving.answers(request) ??
        exposureWebhooks.answers(request) ??
        eventingWebhooks.answers(request) ??
        admission.fetch(request),
    ),
  );
  server.keepAliveTimeout = 120_000;
  boundConnections(server, webhookConnections);
  const listener = await listening(server, { host: options.host, port: 0 });
  const url = `https://${options.host}:${listener.port}`;
  const location = { caBundle: Buffer.from(options.ca).toString("base64"), url };
  const { administrator, ofFunctions = true } = options;
  await (ofFunctions ? configureFunctions : withdrawFunctions)(administrator, location);
  await configure(administrator, location);
  return {
    use: (config) => (admission = createAdmission(config, options.client)),
    configureServing: () => configureServingWebhooks(administrator, location),
    close: () => listener.close(),
  };
}

async function configureFunctions(client: KubeClient, location: WebhookLocation): Promise<void> {
  for (const configuration of admissionConfigurations(location))
    await client.apply(resourceOf(configuration), configuration, { fieldManager: "spry" });
  const conversion = conversionConfiguration(location);
  await client.apply(resources.customResourceDefinitions, conversion, {
    fieldManager: "spry-webhooks",
  });
}

/** A platform of this directory may have run with its own controller before. */
async function withdrawFunctions(client: KubeClient, location: WebhookLocation): Promise<void> {
  for (const configuration of admissionConfigurations(location))
    await client
      .delete(resourceOf(configuration), { name: configuration.metadata.name ?? "" })
      .catch(ignoreNotFound);
}

function resourceOf({ kind = "" }: KubeObject): Resource {
  return kind === "MutatingWebhookConfiguration"
    ? resources.mutatingWebhookConfigurations
    : resources.validatingWebhookConfigurations;
}

function ignoreNotFound(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

async function configure(client: KubeClient, location: WebhookLocation): Promise<void> {
  await configureServingWebhooks(client, location);
  await ensureDefinitions(client, location);
  await ensureEventingDefinitions(client, (path) => webhookClientConfig(location, path));
}
