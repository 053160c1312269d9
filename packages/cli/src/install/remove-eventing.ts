/** What the controller of a cluster made for events, and no list of an installation's objects has. */
import { subscriptionsDefinition } from "@spry/eventing";
import { subscriptions } from "@spry/function";
import { isNotFound, type KubeClient, type KubeObject, type Resource, resources } from "@spry/kube";
import { eventingSecretName } from "../in-cluster/eventing-token.ts";
import { publisherServiceName } from "../in-cluster/publisher-service.ts";
import { administrationService } from "./administration.ts";
import { commonLabels } from "./parts.ts";

const managedBy = "app.kubernetes.io/managed-by";

/** Only what is ours; the definition of Subscriptions stays as long as there are any. Volumes of NATS servers stay. */
export async function removeEventing(client: KubeClient, namespace: string): Promise<void> {
  await removeOwn(client, resources.services, { namespace, name: publisherServiceName });
  for (const name of [eventingSecretName, administrationService])
    await client.delete(resources.secrets, { namespace, name }).catch(unlessMissing);
  const left = await client.list(subscriptions).catch(unlessMissing);
  if (left && left.items.length > 0)
    console.error(`${left.items.length} Subscriptions still exist: their definition stays`);
  else
    await removeOwn(client, resources.customResourceDefinitions, { name: subscriptionsDefinition });
}

async function removeOwn<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  target: { namespace?: string; name: string },
): Promise<void> {
  const found = await client.get(resource, target).catch(unlessMissing);
  if (found?.metadata.labels?.[managedBy] !== commonLabels[managedBy]) return;
  await client.delete(resource, target).catch(unlessMissing);
  console.error(`${resource.kind.toLowerCase()}/${target.name} deleted`);
}

function unlessMissing(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
  return undefined;
}
