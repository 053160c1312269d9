import { knative } from "@spry/function";
import { isNotFound, type KubeClient, type Resource, resources } from "@spry/kube";
import { servingCrds, servingOwnership, servingWebhookNames } from "@spry/serving";

/** What makes the API server ask the webhooks of Knative Serving, which are about to end. */
export async function removeServingWebhooks(client: KubeClient): Promise<void> {
  const { mutating, validating } = servingWebhookNames;
  await remove(client, resources.mutatingWebhookConfigurations, mutating);
  await remove(client, resources.validatingWebhookConfigurations, validating);
}

/**
 * The definitions of Knative Serving, which the controller has installed. They stay if they are another
 * installation's, and while there are Knative Services: those keep running, and nothing scales them. Returns how many
 * there are.
 */
export async function removeServingDefinitions(client: KubeClient): Promise<number> {
  if ((await servingOwnership(client)) !== "ours") return 0;
  const { items } = await client.list(knative.services);
  if (items.length > 0) return items.length;
  for (const { metadata } of servingCrds())
    await remove(client, resources.customResourceDefinitions, metadata.name ?? "");
  return 0;
}

async function remove(client: KubeClient, resource: Resource, name: string): Promise<void> {
  try {
    await client.delete(resource, { name });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
