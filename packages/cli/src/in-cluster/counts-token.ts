import { randomBytes } from "node:crypto";
import { isAlreadyExists, isNotFound, type KubeClient, resources, type Secret } from "@spry/kube";

/** The Secret of what the scaler shows to gateways; gateways may read it by this name (install/gateway.ts). */
export const countsTokenName = "serverless-gateway-counts";

/** For gateways: undefined as long as no leader has made it. */
export async function readCountsToken(
  client: KubeClient,
  namespace: string,
): Promise<string | undefined> {
  try {
    return tokenIn(await client.get(resources.secrets, { namespace, name: countsTokenName }));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** For the leader: made when there is none, also after it has been deleted. */
export async function ensureCountsToken(client: KubeClient, namespace: string): Promise<string> {
  const metadata = { namespace, name: countsTokenName };
  const known = await readCountsToken(client, namespace);
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
    return (await readCountsToken(client, namespace)) ?? token;
  }
}

/** Empty when the Secret has none. */
function tokenIn(secret: Secret): string {
  return Buffer.from(secret.data?.["token"] ?? "", "base64").toString();
}
