import { apiRules, istioGateways } from "@spry/function";
import { isNotFound, type KubeClient, type Resource, resources } from "@spry/kube";
import {
  validatingConfiguration,
  webhookClientConfig,
  type WebhookLocation,
} from "../webhook-location.ts";
import { apiRuleCrd } from "./api-rule-crd.ts";
import { gatewayCrd } from "./gateway-crd.ts";
import { isOurs } from "./ownership.ts";

/** Whose the definition of APIRules is. */
export type DefinitionOwner = "ours" | "other" | "missing";

export const conversionPath = "/convert/apirules";

export async function definitionOwner(
  client: KubeClient,
  resource: Resource = apiRules,
): Promise<DefinitionOwner> {
  const name = `${resource.plural}.${resource.group}`;
  try {
    const found = await client.get(resources.customResourceDefinitions, { name });
    return isOurs(found) ? "ours" : "other";
  } catch (error) {
    if (isNotFound(error)) return "missing";
    throw error;
  }
}

/**
 * Brings the definitions of APIRules and Gateways where they are missing, and keeps our own current; those of another
 * installation (Kyma's API Gateway module, Istio) are left alone, and its APIRules are not checked by our webhook.
 * @returns who serves APIRules
 */
export async function ensureDefinitions(
  client: KubeClient,
  location: WebhookLocation,
): Promise<"ours" | "other"> {
  const { customResourceDefinitions, validatingWebhookConfigurations } = resources;
  const options = { fieldManager: "spry-exposure" };
  if ((await definitionOwner(client, istioGateways)) !== "other")
    await client.apply(customResourceDefinitions, gatewayCrd(), options);
  const serves = (await definitionOwner(client)) !== "other";
  await client.apply(
    validatingWebhookConfigurations,
    validatingConfiguration(serves ? location : undefined),
    options,
  );
  if (!serves) return "other";
  const definition = apiRuleCrd(webhookClientConfig(location, conversionPath));
  await client.apply(customResourceDefinitions, definition, options);
  return "ours";
}
