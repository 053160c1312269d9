/** The publisher's name inside the cluster, the same as in Kyma's Eventing, which may be there already. */
import { setTimeout as pause } from "node:timers/promises";
import { isNotFound, type KubeClient, type Logger, messageOf, resources } from "@spry/kube";
import { eventingLabels } from "../install/eventing-objects.ts";
import { commonLabels } from "../install/parts.ts";

export const publisherServiceName = "eventing-publisher-proxy";
const name = publisherServiceName;
const managedBy = "app.kubernetes.io/managed-by";
const lookAgainMs = 60_000;
const retryMs = 2_000;

/** Whether the Service is there and not ours: Kyma's publisher, or a Function of that name. */
export async function hasForeignPublisher(client: KubeClient, namespace: string): Promise<boolean> {
  try {
    const { metadata } = await client.get(resources.services, { namespace, name });
    return metadata.labels?.[managedBy] !== commonLabels[managedBy];
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** Keeps our Service while there is no other of its name; reports whether there is one. */
export async function keepPublisherService(options: {
  client: KubeClient;
  namespace: string;
  onForeign: (isForeign: boolean) => void;
  log: Logger;
  signal: AbortSignal;
}): Promise<void> {
  const { client, namespace, onForeign, log, signal } = options;
  while (!signal.aborted) {
    let again = lookAgainMs;
    try {
      const isForeign = await hasForeignPublisher(client, namespace);
      onForeign(isForeign);
      if (!isForeign) await client.apply(resources.services, service(namespace), { force: true });
    } catch (error) {
      log.warn(
        { error: messageOf(error) },
        "updating the Service of the publisher failed, trying again",
      );
      again = retryMs;
    }
    await pause(again, undefined, { signal }).catch(() => {});
  }
}

const service = (namespace: string) => ({
  metadata: { name, namespace, labels: { ...commonLabels, ...eventingLabels } },
  spec: {
    selector: eventingLabels,
    ports: [{ name: "http-publish", port: 80, targetPort: "http-publish" }],
  },
});
