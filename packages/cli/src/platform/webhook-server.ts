/** The admission webhooks of the embedded platform: real HTTPS on loopback, as on a cluster. */
import { createServer } from "node:https";
import {
  admissionConfigurations,
  type ControllerConfig,
  conversionConfiguration,
  createAdmission,
  webhookClientConfig,
} from "@spry/controller";
import { ensureEventingDefinitions, eventingWebhooks } from "@spry/eventing";
import { ensureDefinitions, exposureWebhooks } from "@spry/exposure";
import { type KubeClient, resources } from "@spry/kube";
import { listening } from "../listening.ts";
import { configureServingWebhooks, type ServingWebhooks } from "../serving-webhooks.ts";
import { answerWith } from "../webhook-requests.ts";
import { type KeyPair } from "./certificates.ts";

export async function startWebhookServer(options: {
  /** Tells the API server of the webhooks. */
  administrator: KubeClient;
  /** What the webhooks themselves look at objects with. */
  client: KubeClient;
  config: ControllerConfig;
  serving: ServingWebhooks;
  host: string;
  certificate: KeyPair;
  /** PEM of the authority that signed the certificate. */
  ca: string;
}): Promise<{
  use(config: ControllerConfig): void;
  /** The owner of Knative Serving has changed. */
  configureServing(): Promise<void>;
  close(): Promise<void>;
}> {
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
  const listener = await listening(server, { host: options.host, port: 0 });
  const url = `https://${options.host}:${listener.port}`;
  await configure(options.administrator, url, options.ca);
  return {
    use: (config) => (admission = createAdmission(config, options.client)),
    configureServing: () =>
      configureServingWebhooks(options.administrator, {
        caBundle: Buffer.from(options.ca).toString("base64"),
        url,
      }),
    close: () => listener.close(),
  };
}

async function configure(client: KubeClient, url: string, ca: string): Promise<void> {
  const caBundle = Buffer.from(ca).toString("base64");
  for (const configuration of admissionConfigurations({ caBundle, url })) {
    const resource =
      configuration.kind === "MutatingWebhookConfiguration"
        ? resources.mutatingWebhookConfigurations
        : resources.validatingWebhookConfigurations;
    await client.apply(resource, configuration, { fieldManager: "spry" });
  }
  await configureServingWebhooks(client, { caBundle, url });
  const conversion = conversionConfiguration({ caBundle, url });
  await client.apply(resources.customResourceDefinitions, conversion, {
    fieldManager: "spry-webhooks",
  });
  await ensureDefinitions(client, { caBundle, url });
  await ensureEventingDefinitions(client, (path) => webhookClientConfig({ caBundle, url }, path));
}
