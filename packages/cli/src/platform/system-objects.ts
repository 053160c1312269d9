/** The objects that a platform needs before the first Function: what the Helm chart installs on a cluster. */
import { internalRegistrySecret, type RegistryAccess } from "@spry/controller";
import { functionCrd, names } from "@spry/function";
import { isNotFound, type KubeClient, type KubeObject, type Resource, resources } from "@spry/kube";

export const systemNamespace = "kyma-system";

/** Applies them in the order in which they depend on each other; what is unchanged costs no write. */
export async function applySystemObjects(
  client: KubeClient,
  registry: RegistryAccess,
): Promise<void> {
  const apply = <T extends KubeObject>(resource: Resource<T>, object: T) =>
    client.apply(resource, object, { fieldManager: "spry" });
  const secret = internalRegistrySecret(systemNamespace, registry);
  const base = { namespace: systemNamespace, name: names.registrySecret };
  await Promise.all([
    apply(resources.namespaces, { metadata: { name: systemNamespace } }),
    apply(resources.customResourceDefinitions, functionCrd()),
  ]);
  await Promise.all([
    apply(resources.secrets, {
      ...secret,
      metadata: { ...secret.metadata, name: names.internalRegistrySecret },
    }),
    applyDefault(),
    apply(resources.serviceAccounts, {
      metadata: {
        name: names.serviceAccount,
        namespace: systemNamespace,
        labels: { "serverless.kyma-project.io/config": "service-account" },
      },
      automountServiceAccountToken: false,
      imagePullSecrets: [
        { name: names.registrySecret },
        { name: names.remoteRegistrySecret },
        { name: names.internalRegistrySecret },
      ],
    }),
  ]);

  /** Unless somebody has put another registry there: that is theirs. */
  async function applyDefault(): Promise<void> {
    const present = await client.get(resources.secrets, base).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    const isInternal = Buffer.from(present?.data?.["isInternal"] ?? "", "base64").toString();
    if (present && isInternal !== "true") return;
    await apply(resources.secrets, secret);
  }
}
