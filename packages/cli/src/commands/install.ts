import {
  dumpYaml,
  isNotFound,
  type KubeClient,
  messageOf,
  resources,
  type UnknownObject,
} from "@spry/kube";
import { connect, type GlobalOptions } from "../connection.ts";
import { functionsAreAdmitted } from "../install/admission-check.ts";
import { controllerName } from "../install/controller.ts";
import { eventingName } from "../install/eventing-objects.ts";
import { gatewayName } from "../install/gateway.ts";
import { leftovers } from "../install/leftovers.ts";
import {
  configurationObject,
  definitionObjects,
  namespaceObject,
  platformObjects,
} from "../install/objects.ts";
import { commonLabels, type InstalledObject } from "../install/parts.ts";
import { registryName } from "../install/registry.ts";
import { type InstallValues, readValues } from "../install/values.ts";
import { whyNotReady } from "../install/why-not-ready.ts";
import { resourceOf } from "../manifests.ts";
import { UserError } from "../user-error.ts";
import { untilTrue } from "../until-true.ts";

export interface InstallOptions extends GlobalOptions {
  values: string[];
  /** A file with the certificate of the registries' private authority. */
  registryCa?: string;
  dryRun?: boolean;
  wait: boolean;
  timeout: number;
}

export const fieldManager = "spry-install";

/**
 * Applies everything to the cluster (server-side, so that it may be run again with a newer version), and waits until
 * controller and registry are ready and Functions may be applied. The configuration is made once and the operator's
 * from then on.
 */
export async function install(options: InstallOptions): Promise<void> {
  const values = readValues(options.values, options);
  if (options.dryRun) {
    print(values);
    return tellLeftovers(values, options);
  }
  const { client } = await connect(options);
  const { namespace } = values;
  await applyNamespace(client, namespace);
  for (const object of definitionObjects()) await applyObject(client, object);
  const timeoutMs = options.timeout * 1000;
  await untilTrue("the definitions are established", timeoutMs, () => areEstablished(client));
  for (const object of platformObjects(values)) await applyObject(client, object);
  await createConfiguration(client, configurationObject(values));
  if (options.wait) await untilReady(client, values, timeoutMs);
  // Last: what these values replace serves until its successor does.
  await removeLeftovers(client, values);
  if (options.wait)
    console.error(`\nSpry is installed in ${namespace}. You can apply Functions now.`);
}

async function untilReady(
  client: KubeClient,
  values: InstallValues,
  timeoutMs: number,
): Promise<void> {
  const { namespace, registry, gateway, eventing } = values;
  const deployments = [
    controllerName,
    ...(registry.enabled ? [registryName] : []),
    ...(gateway.enabled ? [gatewayName] : []),
    ...(eventing.enabled ? [eventingName] : []),
  ];
  for (const name of deployments) {
    await untilTrue(
      `Deployment ${namespace}/${name} is ready`,
      timeoutMs,
      () => isRolledOut(client, namespace, name),
      {
        why: async () =>
          whyNotReady(client, await client.get(resources.deployments, { namespace, name })),
        namespace,
      },
    );
    console.error(`deployment/${name} is ready`);
  }
  await untilTrue(
    "the API server reaches the controller's webhooks",
    timeoutMs,
    () => functionsAreAdmitted(client, namespace),
    { namespace },
  );
}

async function removeLeftovers(client: KubeClient, values: InstallValues): Promise<void> {
  for (const leftover of await leftovers(client, values, fieldManager)) {
    const { resource, name, namespace, neededBecause } = leftover;
    const title = `${resource.kind.toLowerCase()}/${name}`;
    if (neededBecause) {
      console.error(`${title} is no longer part of the values, but is kept: ${neededBecause}`);
      continue;
    }
    await client
      .delete(resource, { name, namespace }, { propagationPolicy: "Background" })
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    console.error(`${title} deleted: it is no longer part of the values`);
  }
}

/** On standard error, apart from the objects: only a cluster can answer this, and a dry run works without one. */
async function tellLeftovers(values: InstallValues, options: GlobalOptions): Promise<void> {
  try {
    const { client } = await connect(options);
    for (const { resource, name, neededBecause } of await leftovers(client, values, fieldManager)) {
      const fate = neededBecause ? `would be kept: ${neededBecause}` : "would be deleted";
      console.error(`${resource.kind.toLowerCase()}/${name} ${fate}`);
    }
  } catch (error) {
    console.error(`what would be deleted is not known: ${messageOf(error)}`);
  }
}

function print(values: InstallValues): void {
  const objects = [
    namespaceObject(values.namespace),
    ...definitionObjects(),
    ...platformObjects(values),
    configurationObject(values),
  ];
  console.log(objects.map((object) => dumpYaml(object)).join("---\n"));
}

/** A namespace that others have created is used as it is. */
async function applyNamespace(client: KubeClient, name: string): Promise<void> {
  const present = await client.get(resources.namespaces, { name }).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  const part = "app.kubernetes.io/part-of";
  if (present && present.metadata.labels?.[part] !== commonLabels[part]) {
    console.error(`namespace/${name} already exists and is left unchanged`);
    return;
  }
  await applyObject(client, namespaceObject(name));
}

export async function applyObject(
  client: KubeClient,
  object: InstalledObject,
): Promise<UnknownObject> {
  const { kind, metadata } = object;
  const resource = await resourceOf(client, { object, origin: `${kind} ${metadata.name}` });
  const stored = await client.apply(resource, object, { fieldManager, force: true });
  console.error(`${kind.toLowerCase()}/${metadata.name} applied`);
  return stored;
}

async function createConfiguration(client: KubeClient, object: InstalledObject): Promise<void> {
  const { kind, metadata } = object;
  const resource = await resourceOf(client, { object, origin: kind });
  const { items } = await client.list(resource);
  if (items.length > 0) {
    console.error(
      `${kind.toLowerCase()}/${items[0]?.metadata.name} already exists and is left unchanged`,
    );
    return;
  }
  await client.create(resource, object, { fieldManager });
  console.error(`${kind.toLowerCase()}/${metadata.name} created`);
}

async function areEstablished(client: KubeClient): Promise<boolean> {
  for (const { metadata } of definitionObjects()) {
    const target = { name: metadata.name ?? "" };
    const { status } = await client.get(resources.customResourceDefinitions, target);
    const found = status?.conditions?.find(({ type }) => type === "Established");
    if (found?.status !== "True") return false;
  }
  return true;
}

async function isRolledOut(client: KubeClient, namespace: string, name: string): Promise<boolean> {
  const { metadata, spec, status } = await client.get(resources.deployments, { namespace, name });
  const failure = status?.conditions?.find(({ type }) => type === "ReplicaFailure");
  if (failure?.status === "True") {
    throw new UserError(`Deployment ${namespace}/${name}: ${failure.message}`);
  }
  const desired = spec?.replicas ?? 1;
  return (
    (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0) &&
    (status?.updatedReplicas ?? 0) >= desired &&
    (status?.readyReplicas ?? 0) >= desired &&
    (status?.replicas ?? 0) === desired
  );
}
