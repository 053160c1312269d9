import { randomBytes } from "node:crypto";
import { isAlreadyExists, isNotFound, type KubeClient, resources } from "@spry/kube";

/** Read by the Deployment of events and by the NATS servers, as a variable. */
export const eventingSecretName = "serverless-eventing";
export const natsTokenKey = "natsToken";

/** Of NATS servers that the Serverless object names; keys of the same Secret, which are missing where there are none. */
export const externalKeys = {
  servers: "externalServers",
  replicas: "externalReplicas",
  token: "externalToken",
  username: "externalUsername",
  password: "externalPassword",
  authority: "externalAuthority",
  plaintext: "externalPlaintext",
} as const;

/** For the leader: what clients of the NATS servers show. It begins with a letter, since it is a word of their configuration. */
export async function ensureNatsToken(client: KubeClient, namespace: string): Promise<void> {
  const metadata = { namespace, name: eventingSecretName };
  const token = `t${randomBytes(32).toString("hex")}`;
  const data = { [natsTokenKey]: Buffer.from(token).toString("base64") };
  try {
    const { data: known } = await client.get(resources.secrets, metadata);
    if (known?.[natsTokenKey]) return;
    await client.patch(resources.secrets, metadata, { data });
    return;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  await client
    .create(resources.secrets, { metadata, type: "Opaque", data })
    .catch((error: unknown) => {
      // The leader before this one was faster.
      if (!isAlreadyExists(error)) throw error;
    });
}
