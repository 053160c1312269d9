import { admissionConfigurations, conversionConfiguration } from "@spry/controller";
import { ensureDefinitions } from "@spry/exposure";
import { type KubeClient, resources } from "@spry/kube";
import { configureServingWebhooks } from "../serving-webhooks.ts";
import { webhookServiceName } from "./webhook-certificate.ts";

/** What the objects are called by which the API server knows the webhooks. */
export function webhookNames(namespace: string): { mutating: string; validating: string } {
  const service = { name: webhookServiceName, namespace };
  const [mutating, validating] = admissionConfigurations({ caBundle: "", service });
  return { mutating: mutating.metadata.name ?? "", validating: validating.metadata.name ?? "" };
}

/** Tells the API server where the webhooks are and whose certificates to trust there (PEM). */
export async function configureWebhooks(
  client: KubeClient,
  authorities: string,
  namespace: string,
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
}
