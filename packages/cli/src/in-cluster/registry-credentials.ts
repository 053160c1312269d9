import { randomBytes } from "node:crypto";
import { isAlreadyExists, isNotFound, type KubeClient, resources, type Secret } from "@spry/kube";

/** Read by the registry's Deployment, too. */
export const registryCredentialsName = "serverless-docker-registry";

/** The one user of the registry in the cluster: made once, kept in a Secret. */
export async function ensureRegistryCredentials(
  client: KubeClient,
  namespace: string,
): Promise<{ username: string; password: string }> {
  const target = { namespace, name: registryCredentialsName };
  const read = async () => credentialsIn(await client.get(resources.secrets, target));
  try {
    return await read();
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  const made = {
    username: randomBytes(10).toString("hex"),
    password: randomBytes(20).toString("hex"),
  };
  const data = { username: encode(made.username), password: encode(made.password) };
  try {
    await client.create(resources.secrets, { metadata: { ...target }, type: "Opaque", data });
    return made;
  } catch (error) {
    // Another replica was faster.
    if (isAlreadyExists(error)) return read();
    throw error;
  }
}

function credentialsIn(secret: Secret): { username: string; password: string } {
  const value = (key: string) => Buffer.from(secret.data?.[key] ?? "", "base64").toString();
  return { username: value("username"), password: value("password") };
}

const encode = (text: string): string => Buffer.from(text).toString("base64");
