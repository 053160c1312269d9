import { labels, registryFinalizer } from "@spry/function";
import { isNotFound, type KubeClient, resources, type Secret } from "@spry/kube";

/** Sets the finalizer by which a registry's Secret waits for its copies, or takes it away. */
export async function holdBack(client: KubeClient, secret: Secret, wished: boolean): Promise<void> {
  const { name = "", namespace, finalizers = [], resourceVersion } = secret.metadata;
  if (finalizers.includes(registryFinalizer) === wished) return;
  const others = finalizers.filter((each) => each !== registryFinalizer);
  const metadata = {
    resourceVersion,
    finalizers: wished ? [...others, registryFinalizer] : others,
  };
  await client
    .patch(resources.secrets, { name, namespace }, { metadata })
    .catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
}

/**
 * Releases the registries' Secrets of the base namespace by itself: before no controller is left that would remove
 * the finalizer. Returns how many had it.
 */
export async function releaseRegistrySecrets(
  client: KubeClient,
  namespace: string,
): Promise<number> {
  const labelSelector = `${labels.config}=credentials`;
  const { items } = await client.list(resources.secrets, { namespace, labelSelector });
  const held = items.filter(({ metadata }) => metadata.finalizers?.includes(registryFinalizer));
  for (const secret of held) await holdBack(client, secret, false);
  return held.length;
}
