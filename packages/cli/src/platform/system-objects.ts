/** The objects that a platform needs before the first Function: what the Helm chart installs on a cluster. */
import { functionCrd, names } from "@spry/function";
import { isNotFound, type KubeClient, type KubeObject, type Resource, resources } from "@spry/kube";

export const systemNamespace = "kyma-system";

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
  const base = { namespace: systemNamespace, name: names.registrySecret };
  await Promise.all([
    apply(resources.namespaces, { metadata: { name: systemNamespace } }),
    apply(resources.customResourceDefinitions, functionCrd()),
  ]);
  await Promise.all([
    apply(resources.secrets, registrySecret(names.internalRegistrySecret, registry)),
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
    await apply(resources.secrets, registrySecret(names.registrySecret, registry));
  }
}

/** The contract's Secret (section 6.2) for a registry of our own. */
function registrySecret(name: string, registry: RegistryAccess) {
  const { username, password, pushAddress, pullAddress } = registry;
  const auth = { auth: Buffer.from(`${username}:${password}`).toString("base64") };
  return {
    metadata: {
      name,
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
