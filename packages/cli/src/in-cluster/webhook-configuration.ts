import { admissionConfigurations, conversionConfiguration } from "@spry/controller";
import { type KubeClient, resources } from "@spry/kube";
import { type WebhookCertificate, webhookServiceName } from "./webhook-certificate.ts";

/** Tells the API server where the webhooks are and whose certificates to trust there. */
export async function configureWebhooks(
  client: KubeClient,
  { ca }: WebhookCertificate,
  namespace: string,
): Promise<void> {
  const caBundle = Buffer.from(ca).toString("base64");
  const service = { name: webhookServiceName, namespace };
  const [mutating, validating] = admissionConfigurations({ caBundle, service });
  await client.apply(resources.mutatingWebhookConfigurations, mutating);
  await client.apply(resources.validatingWebhookConfigurations, validating);
  const conversion = conversionConfiguration({ caBundle, service });
  await client.apply(resources.customResourceDefinitions, conversion, {
    fieldManager: "spry-webhooks",
  });
}
