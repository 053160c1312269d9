import {
  deletionHook,
  releaseRegistrySecrets,
  type Serverless,
  serverlesses,
} from "@spry/controller";
import { definitionOwner } from "@spry/exposure";
import { apiRules, functions, istioGateways, labels, managedByUser } from "@spry/function";
import { isNotFound, type KubeClient, type KubeObject, type Resource, resources } from "@spry/kube";
import { connect, type GlobalOptions } from "../connection.ts";
import { controllerLabels, webhookObjects } from "../install/controller.ts";
import { defaultValues, withEverything } from "../install/values.ts";
import { definitionObjects, platformObjects } from "../install/objects.ts";
import { removeServingDefinitions, removeServingWebhooks } from "../install/remove-serving.ts";
import { commonLabels, type InstalledObject } from "../install/parts.ts";
import { removeEventing } from "../install/remove-eventing.ts";
import { countsTokenName } from "../in-cluster/counts-token.ts";
import { registryKeyName } from "../in-cluster/registry-key.ts";
import { usageTokenName } from "../in-cluster/usage-token.ts";
import { webhookSecretName } from "../in-cluster/webhook-certificate.ts";
import { registryObjects } from "../install/registry.ts";
import { resourceOf } from "../manifests.ts";
import { untilTrue } from "../until-true.ts";
import { spryCommand, startCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";

export interface UninstallOptions extends GlobalOptions {
  /** What becomes of Functions, when there are any. */
  functions?: "keep" | "delete";
  timeout: number;
}

/**
 * Removes an installation. While Functions exist it refuses, unless an option says what to do with them: delete them
 * with all that belongs to them, or keep them running without a controller.
 */
export async function uninstall(options: UninstallOptions): Promise<void> {
  const { client, gateway } = await connect(options);
  if (gateway)
    throw new UserError(
      `this is a platform of \`${startCommand()}\`, not an installation on a cluster`,
      `\`${spryCommand("down")}\` stops it, and its data is in its data directory`,
    );
  const namespace = options.namespace ?? defaultValues.namespace;
  const timeoutMs = options.timeout * 1000;
  const present = await functionsIn(client);
  if (present.length > 0 && !options.functions) {
    const list = present
      .slice(0, 5)
      .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);
    const more = present.length > 5 ? ` and ${present.length - 5} more` : "";
    throw new UserError(
      `Functions still exist: ${list.join(", ")}${more}`,
      "delete them first, or use --functions delete, or --functions keep to leave them running",
    );
  }
  const keep = present.length > 0 && options.functions === "keep";
  if (!keep) await deleteFunctions(client, present, timeoutMs);
  await endConfiguration(client, keep, timeoutMs);
  // Whatever of it is optional may be there.
  const values = withEverything({ ...defaultValues, namespace });
  // Functions that are kept have their images in the registry: it stays, with what it needs.
  const staying = new Set(keep ? registryObjects(values).map(idOf) : []);
  const all = platformObjects(values).filter((object) => !staying.has(idOf(object)));
  // First what calls the webhooks, so that no request fails because they have ended.
  const rights = all.filter(({ kind }) => isRight(kind)).toReversed();
  const others = all.filter(({ kind }) => !isRight(kind)).toReversed();
  await removeServingWebhooks(client);
  for (const object of others) await deleteObject(client, object);
  await untilTrue("the controller has ended", timeoutMs, async () => {
    const labelSelector = Object.entries(controllerLabels).map(([name, is]) => `${name}=${is}`);
    const which = { namespace, labelSelector: labelSelector.join() };
    return (await client.list(resources.pods, which)).items.length === 0;
  });
  // Until then it needs them: it finishes what it has begun, and gives its lease back.
  for (const object of rights) await deleteObject(client, object);
  // It may have put one in order a moment before.
  for (const object of webhookObjects(namespace)) await deleteObject(client, object);
  await removeServingWebhooks(client);
  const left = await removeServingDefinitions(client);
  if (left > 0)
    console.error(
      `${left} Knative Services still exist: they keep the Pods that they have, and their definitions stay`,
    );
  await removeEventing(client, namespace);
  await releaseRegistrySecrets(client, namespace);
  const shared = [webhookSecretName, countsTokenName, usageTokenName];
  const made = keep ? shared : [...shared, registryKeyName];
  for (const name of made) await remove(client, resources.secrets, { namespace, name });
  if (keep) await endConversion(client, functions);
  else {
    await removeCopies(client);
    for (const object of definitionObjects().toReversed()) await deleteObject(client, object);
  }
  await removeExposure(client, keep);
  await removeNamespace(client, namespace, keep, timeoutMs);
  console.error(keep ? "\nSpry is uninstalled; Functions keep running." : "\nSpry is uninstalled.");
}

const isRight = (kind: string): boolean =>
  ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"].includes(kind);

const idOf = ({ kind, metadata }: InstalledObject): string => `${kind}/${metadata.name}`;

async function functionsIn(client: KubeClient) {
  try {
    return (await client.list(functions)).items;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

async function deleteFunctions(
  client: KubeClient,
  present: KubeObject[],
  timeoutMs: number,
): Promise<void> {
  for (const { metadata } of present) {
    const { name = "", namespace } = metadata;
    await client.delete(functions, { name, namespace }, { propagationPolicy: "Foreground" });
  }
  await untilTrue("all Functions are deleted", timeoutMs, async () => {
    return (await functionsIn(client)).length === 0;
  });
  if (present.length > 0) console.error(`${present.length} functions deleted`);
}

/** The controller would wait for the Functions that are kept. */
async function endConfiguration(
  client: KubeClient,
  keep: boolean,
  timeoutMs: number,
): Promise<void> {
  const list = async (): Promise<Serverless[]> => {
    try {
      return (await client.list(serverlesses)).items;
    } catch (error) {
      if (isNotFound(error)) return [];
      throw error;
    }
  };
  for (const { metadata } of await list()) {
    const { name = "", namespace } = metadata;
    await client.delete(serverlesses, { name, namespace });
    if (!keep) continue;
    const finalizers = metadata.finalizers?.filter((each) => each !== deletionHook) ?? [];
    await client
      .patch(serverlesses, { name, namespace }, { metadata: { finalizers } })
      .catch(absent);
  }
  await untilTrue(
    "the Serverless object is deleted (its controller removes the finalizer)",
    timeoutMs,
    async () => {
      return (await list()).length === 0;
    },
  );
}

/** Definitions of another installation, and their objects, stay as they are. */
async function removeExposure(client: KubeClient, keep: boolean): Promise<void> {
  for (const resource of [apiRules, istioGateways]) {
    if ((await definitionOwner(client, resource)) !== "ours") continue;
    const name = `${resource.plural}.${resource.group}`;
    if (!keep) await remove(client, resources.customResourceDefinitions, { name });
    else if (resource === apiRules) await endConversion(client, apiRules);
  }
}

/** No server converts any more: objects are served as they are stored. */
async function endConversion(client: KubeClient, { plural, group }: Resource): Promise<void> {
  const name = `${plural}.${group}`;
  const none = { strategy: "None", webhook: null };
  await client.patch(resources.customResourceDefinitions, { name }, { spec: { conversion: none } });
}

async function deleteObject(client: KubeClient, object: InstalledObject): Promise<void> {
  const { kind, metadata } = object;
  const { name = "", namespace } = metadata;
  await remove(client, await resourceOf(client, { object, origin: kind }), { name, namespace });
}

async function remove(
  client: KubeClient,
  resource: Resource,
  target: { name: string; namespace?: string | undefined },
): Promise<void> {
  try {
    await client.delete(resource, target, { propagationPolicy: "Background" });
    console.error(`${resource.kind.toLowerCase()}/${target.name} deleted`);
  } catch (error) {
    absent(error);
  }
}

/** The objects that every namespace got; those that users have taken over stay. */
async function removeCopies(client: KubeClient): Promise<void> {
  const ours = `${labels.config} in (credentials,service-account),${labels.managedBy}!=${managedByUser}`;
  for (const resource of [resources.secrets, resources.serviceAccounts]) {
    const { items } = await client.list<KubeObject>(resource, { labelSelector: ours });
    for (const { metadata } of items) {
      const { name = "", namespace } = metadata;
      await client.delete(resource, { name, namespace }).catch(absent);
    }
    if (items.length > 0) console.error(`${items.length} ${resource.plural} deleted`);
  }
}

/** Only one that the installation has made, and when nothing in it is needed any more. */
async function removeNamespace(
  client: KubeClient,
  name: string,
  keep: boolean,
  timeoutMs: number,
): Promise<void> {
  const present = await client.get(resources.namespaces, { name }).catch(absent);
  const part = "app.kubernetes.io/part-of";
  if (present?.metadata.labels?.[part] !== commonLabels[part]) return;
  if (keep) {
    console.error(`namespace/${name} is kept: its registry may hold images of Functions`);
    return;
  }
  await remove(client, resources.namespaces, { name });
  await untilTrue(`namespace ${name} is deleted`, timeoutMs, async () => {
    return (await client.get(resources.namespaces, { name }).catch(absent)) === undefined;
  });
}

function absent(error: unknown): undefined {
  if (isNotFound(error)) return undefined;
  throw error;
}
