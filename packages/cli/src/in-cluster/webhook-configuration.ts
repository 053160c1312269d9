import {
  admissionConfigurations,
  conversionConfiguration,
  webhookClientConfig,
} from "@spry/controller";
import { ensureEventingDefinitions } from "@spry/eventing";
import { ensureDefinitions } from "@spry/exposure";
import { type KubeClient, resources } from "@spry/kube";
import { configureServingWebhooks } from "../serving-webhooks.ts";
import { hasForeignPublisher } from "./publisher-service.ts";
import { webhookServiceName } from "./webhook-certificate.ts";

/** What the objects are called by which the API server knows the webhooks. */
export function webhookNames(namespace: string): { mutating: string; validating: string } {
  const service = { name: webhookServiceName, namespace };
  const [mutating, validating] = admissionConfigurations({ caBundle: "", service });
  return { mutating: mutating.metadata.name ?? "", validating: validating.metadata.name ?? "" };
}

/** Writes to the API server where the webhooks are and whose certificates to trust there (PEM). */
export async function configureWebhooks(
  client: KubeClient,
  authorities: string,
  { namespace, eventing }: { namespace: string; eventing: boolean },
): Promise<void> {
  const caBundle = Buffer.from(authorities).toString("base64");
  const service = { name: webhookServiceName, namespace };
  const [mutating, validating] = admissionConfigurations({ caBundle, service });
  await client.apply(resources.mutatingWebhookConfigurations, mutating);
  await client.apply(resources.validatingWebhookConfigurations, validating);
  await configureServingWebhooks(client, { caBundle, service });
  const conversion = conversionConfiguration({ caBundle, service });
  await client.apply(resources.customResourceDefinitions, conversion, {
    fieldManager: "spry-webhooks",
  });
  await ensureDefinitions(client, { caBundle, service });
  // Where another publisher is, its installation defines Subscriptions, now or soon.
  if (eventing && !(await hasForeignPublisher(client, namespace)))
    await ensureEventingDefinitions(client, (path) =>
      webhookClientConfig({ caBundle, service }, path),
    );
}
