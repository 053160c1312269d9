/** Tokens that programs of the installation show to each other: each in a Secret of its own. */
import { randomBytes } from "node:crypto";
import { isAlreadyExists, isNotFound, type KubeClient, resources, type Secret } from "@spry/kube";

/** Undefined as long as no leader has made it. */
export async function readSharedToken(
  client: KubeClient,
  target: { namespace: string; name: string },
): Promise<string | undefined> {
  try {
    return tokenIn(await client.get(resources.secrets, target));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** For the leader: made when there is none, also after it has been deleted. */
export async function ensureSharedToken(
  client: KubeClient,
  metadata: { namespace: string; name: string },
): Promise<string> {
  const known = await readSharedToken(client, metadata);
  if (known) return known;
  const token = randomBytes(32).toString("hex");
  const data = { token: Buffer.from(token).toString("base64") };
  try {
    if (known === "") await client.patch(resources.secrets, metadata, { data });
    else await client.create(resources.secrets, { metadata, type: "Opaque", data });
    return token;
  } catch (error) {
    // The leader before this one was faster.
    if (!isAlreadyExists(error)) throw error;
    return (await readSharedToken(client, metadata)) ?? token;
  }
}

/** Empty when the Secret has none. */
function tokenIn(secret: Secret): string {
  return Buffer.from(secret.data?.["token"] ?? "", "base64").toString();
}
