import { type CustomResourceDefinition, isNotFound, type KubeClient, resources } from "@spry/kube";
import { definitionLabels, servingCrds } from "./crds.ts";

const partOf = "app.kubernetes.io/part-of";
const nameLabel = "app.kubernetes.io/name";

/** Whose the definitions of `serving.knative.dev` are. */
export type Ownership = "ours" | "foreign" | "absent";

/** A definition that has Knative's labels is another installation's, also if it was once ours. */
export function ownershipOf(definition: CustomResourceDefinition | undefined): Ownership {
  if (!definition) return "absent";
  const labels = definition.metadata.labels ?? {};
  const isKnatives =
    labels[nameLabel] === "knative-serving" || labels["knative.dev/crd-install"] !== undefined;
  return labels[partOf] === definitionLabels[partOf] && !isKnatives ? "ours" : "foreign";
}

export async function servingOwnership(client: KubeClient): Promise<Ownership> {
  const all = await Promise.all(
    servingCrds().map(async ({ metadata: { name = "" } }) => {
      try {
        const found = await client.get(resources.customResourceDefinitions, { name });
        return ownershipOf(found);
      } catch (error) {
        if (isNotFound(error)) return "absent";
        throw error;
      }
    }),
  );
  if (all.includes("foreign")) return "foreign";
  return all.includes("absent") ? "absent" : "ours";
}

/**
 * Installs the definitions, unless they are another installation's: then nothing is written, and Knative Services are left
 * to that one.
 */
export async function installServing(client: KubeClient): Promise<"ours" | "foreign"> {
  if ((await servingOwnership(client)) === "foreign") return "foreign";
  for (const definition of servingCrds())
    await client.apply(resources.customResourceDefinitions, definition, {
      fieldManager: "spry-serving",
    });
  return "ours";
}
