/**
 * The Subscriptions and APIRules of a `config.yaml` belong to its Function, as with the original's CLI: they are deleted with it, and
 * one that the file no longer has is deleted when it is applied. What other commands wrote (`spry expose`) stays.
 */
import { apiRules } from "@spry/function";
import {
  isForbidden,
  isNotFound,
  type KubeClient,
  type Resource,
  type UnknownObject,
} from "@spry/kube";
import { fieldManager } from "../apply-object.ts";
import { type Manifest } from "../manifests.ts";
import { ownerReference } from "../owner-reference.ts";

const subscriptions: Resource<UnknownObject> = {
  group: "eventing.kyma-project.io",
  version: "v1alpha2",
  kind: "Subscription",
  plural: "subscriptions",
  namespaced: true,
};
const kinds = [subscriptions, apiRules as unknown as Resource<UnknownObject>];

export class ConfigFamily {
  /** Functions that were applied from a file, by its own name for them. */
  readonly #parents = new Map<string, UnknownObject>();
  /** What the files have, also what could not be applied. */
  readonly #known = new Set<string>();

  /** A child gets its Function as owner, which has been applied before it. */
  adopt({ config }: Manifest, object: UnknownObject): void {
    this.#known.add(keyOf(object));
    const parent = config?.isChild ? this.#parents.get(config.name) : undefined;
    if (parent) object.metadata.ownerReferences = [ownerReference(parent)];
  }

  add({ config }: Manifest, stored: UnknownObject): void {
    if (config && !config.isChild) this.#parents.set(config.name, stored);
  }

  /** Deletes what an earlier version of a file had; returns the labels, also for `isDryRun`. */
  async removeOthers(client: KubeClient, isDryRun: boolean): Promise<string[]> {
    const removed: string[] = [];
    for (const parent of this.#parents.values())
      for (const resource of kinds) {
        const { namespace } = parent.metadata;
        for (const object of await listed(client, resource, namespace)) {
          if (!this.#isLeftOver(resource.kind, object, parent)) continue;
          const { name = "" } = object.metadata;
          removed.push(`${resource.kind.toLowerCase()}/${name}`);
          if (!isDryRun) await client.delete(resource, { namespace, name });
        }
      }
    return removed;
  }

  #isLeftOver(kind: string, { metadata }: UnknownObject, { metadata: parent }: UnknownObject) {
    const { ownerReferences = [], managedFields = [] } = metadata;
    return (
      !this.#known.has(keyOf({ kind, metadata })) &&
      ownerReferences.some((owner) => owner.uid === parent.uid) &&
      managedFields.some(({ manager }) => manager === fieldManager)
    );
  }
}

const keyOf = ({ kind, metadata }: Pick<UnknownObject, "kind" | "metadata">): string =>
  [kind, metadata.namespace, metadata.name].join("/");

/** None where the kind is not served, or may not be read. */
async function listed(
  client: KubeClient,
  resource: Resource<UnknownObject>,
  namespace: string | undefined,
): Promise<UnknownObject[]> {
  try {
    return (await client.list(resource, { ...(namespace !== undefined && { namespace }) })).items;
  } catch (error) {
    if (isNotFound(error) || isForbidden(error)) return [];
    throw error;
  }
}
