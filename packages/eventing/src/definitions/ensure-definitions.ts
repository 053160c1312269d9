import { subscriptions } from "@spry/function";
import { isNotFound, type KubeClient, resources } from "@spry/kube";
import { ourLabels, subscriptionCrd } from "./subscription-crd.ts";

/** The owner of the definition of Subscriptions. */
export type DefinitionOwner = "ours" | "other" | "missing";

/** Where the webhook of conversions answers. */
export const conversionPath = "/convert/subscriptions";
export const definitionName = `${subscriptions.plural}.${subscriptions.group}`;

export async function definitionOwner(client: KubeClient): Promise<DefinitionOwner> {
  try {
    const { metadata } = await client.get(resources.customResourceDefinitions, {
      name: definitionName,
    });
    const [[name, value] = ["", ""]] = Object.entries(ourLabels);
    return metadata.labels?.[name] === value ? "ours" : "other";
  } catch (error) {
    if (isNotFound(error)) return "missing";
    throw error;
  }
}

/**
 * Creates the definition of Subscriptions where it is missing, and keeps our own current; that of another installation
 * (Kyma's Eventing module) is left alone. `webhook` says where the API server finds `conversionPath`.
 */
export async function ensureDefinitions(
  client: KubeClient,
  webhook: (path: string) => object,
): Promise<"ours" | "other"> {
  if ((await definitionOwner(client)) === "other") return "other";
  const definition = subscriptionCrd(webhook(conversionPath));
  await client.apply(resources.customResourceDefinitions, definition, {
    fieldManager: "spry-eventing",
  });
  return "ours";
}
