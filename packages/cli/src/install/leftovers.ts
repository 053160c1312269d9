/** What an earlier `spry install` has made, and the values in force do not ask for any more. */
import { serverlesses } from "@spry/controller";
import { labels, managedBy } from "@spry/function";
import { isNotFound, type KubeClient, type Resource, resources } from "@spry/kube";
import { resourceOf } from "../manifests.ts";
import { platformObjects } from "./objects.ts";
import { commonLabels, type InstalledObject } from "./parts.ts";
import { registryName } from "./registry.ts";
import { type InstallValues, withEverything } from "./values.ts";

export interface Leftover {
  resource: Resource;
  name: string;
  namespace: string | undefined;
  /** Why it is not to be removed yet; undefined when it may go. */
  neededBecause: string | undefined;
}

/**
 * Objects with the installation's labels that `fieldManager` has applied and that are not among the platform's
 * objects for these values: a component that was switched off, an object of an older version. The registry is needed
 * for as long as images of Functions are in it; its volume claim holds data, and only the operator may delete it.
 */
export async function leftovers(
  client: KubeClient,
  values: InstallValues,
  fieldManager: string,
): Promise<Leftover[]> {
  const desired = new Set(platformObjects(values).map(idOf));
  const registry = registryParts(values);
  const registryIsNeeded = await whyRegistryIsNeeded(client, values.namespace);
  const found: Leftover[] = [];
  for (const { resource, namespaces } of await kindsOf(client, values)) {
    const labelSelector = Object.entries(commonLabels)
      .map(([name, value]) => `${name}=${value}`)
      .join();
    const lists = await Promise.all(
      namespaces.map((namespace) => client.list(resource, { namespace, labelSelector })),
    );
    for (const { metadata } of lists.flatMap(({ items }) => items)) {
      const { name = "", namespace, managedFields = [], deletionTimestamp } = metadata;
      const id = idOf({ kind: resource.kind, metadata });
      if (desired.has(id) || deletionTimestamp) continue;
      if (!managedFields.some(({ manager }) => manager === fieldManager)) continue;
      const isData = resource.kind === "PersistentVolumeClaim";
      const forRegistry = registry.has(id) ? registryIsNeeded : undefined;
      const neededBecause = isData ? "it holds data" : forRegistry;
      found.push({ resource, name, namespace, neededBecause });
    }
  }
  return found;
}

/** The objects that there would not be without a registry in the cluster. */
function registryParts(values: InstallValues): Set<string> {
  const all = withEverything(values);
  const without = { ...all, registry: { ...all.registry, enabled: false } };
  const others = new Set(platformObjects(without).map(idOf));
  const ids = platformObjects(all).map(idOf);
  return new Set(ids.filter((id) => !others.has(id)));
}

const idOf = ({ kind, metadata }: Pick<InstalledObject, "kind" | "metadata">): string =>
  `${kind}/${metadata.namespace ?? ""}/${metadata.name}`;

interface Kind {
  resource: Resource;
  /** Where an installation has objects of it, which may be others than its own; undefined is for the whole cluster. */
  namespaces: (string | undefined)[];
}

/** In the order of their removal: clients before servers. */
async function kindsOf(client: KubeClient, values: InstallValues): Promise<Kind[]> {
  const byKind = Map.groupBy(platformObjects(withEverything(values)), ({ kind }) => kind);
  const found: Kind[] = [];
  for (const [kind, objects] of [...byKind].toReversed()) {
    const [object] = objects;
    if (!object) continue;
    const resource = await resourceOf(client, { object, origin: kind });
    const namespaces = new Set(objects.map(({ metadata }) => metadata.namespace));
    found.push({ resource, namespaces: [...namespaces] });
  }
  return found;
}

async function whyRegistryIsNeeded(
  client: KubeClient,
  namespace: string,
): Promise<string | undefined> {
  const { items: configurations } = await client
    .list(serverlesses, { namespace })
    .catch(noneIfUnknown);
  const user = configurations.find(({ spec }) => spec?.dockerRegistry?.enableInternal !== false);
  if (user) {
    const { namespace: where, name } = user.metadata;
    return `serverless ${where}/${name} says dockerRegistry.enableInternal`;
  }
  const port = await registryPort(client, namespace);
  const { items } = await client.list(resources.deployments, {
    labelSelector: `${labels.managedBy}=${managedBy}`,
  });
  const users = items.filter(({ spec }) =>
    spec?.template.spec?.containers.some(({ image }) => image?.startsWith(`localhost:${port}/`)),
  );
  if (users.length === 0) return undefined;
  const { metadata } = users[0]!;
  const more = users.length > 1 ? ` and ${users.length - 1} more` : "";
  return `the images of Functions are in it: ${metadata.namespace}/${metadata.name}${more}`;
}

/** By which nodes pull from the registry that is there. */
async function registryPort(client: KubeClient, namespace: string): Promise<number | undefined> {
  const service = await client
    .get(resources.services, { namespace, name: registryName })
    .catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
  return service?.spec?.ports?.[0]?.nodePort;
}

function noneIfUnknown(error: unknown): { items: [] } {
  if (isNotFound(error)) return { items: [] };
  throw error;
}
