/** The objects that a platform needs before the first Function: what the Helm chart installs on a cluster. */
import { functionCrd } from "@spry/function";
import { type KubeClient, type KubeObject, type Resource, resources } from "@spry/kube";

export const systemNamespace = "kyma-system";
export const registrySecretName = "serverless-registry-config-default";
export const serviceAccountName = "serverless-function";

export interface RegistryAccess {
  /** Host (and port) that the builder pushes to. */
  pushAddress: string;
  /** Host in the names of images; the node knows where that is. */
  pullAddress: string;
  username: string;
  password: string;
}

/** Applies them in the order in which they depend on each other; what is unchanged costs no write. */
export async function applySystemObjects(
  client: KubeClient,
  registry: RegistryAccess,
): Promise<void> {
  const apply = <T extends KubeObject>(resource: Resource<T>, object: T) =>
    client.apply(resource, object, { fieldManager: "spry" });
  await Promise.all([
    apply(resources.namespaces, { metadata: { name: systemNamespace } }),
    apply(resources.customResourceDefinitions, functionCrd()),
  ]);
  await Promise.all([
    apply(resources.secrets, registrySecret(registry)),
    apply(resources.serviceAccounts, {
      metadata: {
        name: serviceAccountName,
        namespace: systemNamespace,
        labels: { "serverless.kyma-project.io/config": "service-account" },
      },
      automountServiceAccountToken: false,
      imagePullSecrets: [{ name: registrySecretName }],
    }),
  ]);
}

/** The contract's Secret (section 6.2) for a registry of our own. */
function registrySecret(registry: RegistryAccess) {
  const { username, password, pushAddress, pullAddress } = registry;
  const auth = { auth: Buffer.from(`${username}:${password}`).toString("base64") };
  return {
    metadata: {
      name: registrySecretName,
      namespace: systemNamespace,
      labels: { "serverless.kyma-project.io/config": "credentials" },
    },
    type: "kubernetes.io/dockerconfigjson",
    data: encode({
      username,
      password,
      isInternal: "true",
      pullRegAddr: pullAddress,
      pushRegAddr: pushAddress,
      ".dockerconfigjson": JSON.stringify({ auths: { [pushAddress]: auth, [pullAddress]: auth } }),
    }),
  };
}

function encode(values: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString("base64")]),
  );
}
