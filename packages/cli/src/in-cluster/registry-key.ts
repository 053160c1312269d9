import { randomBytes } from "node:crypto";
import { isAlreadyExists, isNotFound, type KubeClient, resources, type Secret } from "@spry/kube";

/** Read by the registry's Deployment, too. */
export const registryKeyName = "serverless-docker-registry";

/** What the logins at the registry in the cluster are signed with: made once, kept in a Secret. */
export async function ensureRegistryKey(client: KubeClient, namespace: string): Promise<string> {
  const target = { namespace, name: registryKeyName };
  const read = async () => keyIn(await client.get(resources.secrets, target));
  const data = { key: encode(randomBytes(32).toString("hex")) };
  try {
    const known = await read();
    if (known) return known;
    // Of an earlier version, which had one password for all: good for nothing any more.
    return keyIn(await client.patch(resources.secrets, target, { data: { ...data, ...former } }));
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  try {
    return keyIn(
      await client.create(resources.secrets, { metadata: { ...target }, type: "Opaque", data }),
    );
  } catch (error) {
    // Another replica was faster.
    if (isAlreadyExists(error)) return read();
    throw error;
  }
}

const former = { username: null, password: null };

function keyIn(secret: Secret): string {
  return Buffer.from(secret.data?.["key"] ?? "", "base64").toString();
}

const encode = (text: string): string => Buffer.from(text).toString("base64");
