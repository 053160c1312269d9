import { type KubeObject, MultiMap, type OwnerReference } from "@spry/kube";
import { type ApiResource } from "../api-resources.ts";

/** What the collector remembers of an object: who it is, whose it is, and how it is going. */
export interface OwnedObject {
  kind: ApiResource;
  uid: string;
  namespace?: string | undefined;
  name: string;
  owners: readonly OwnerReference[];
  finalizers: readonly string[];
  deleting: boolean;
}

/** Who owns whom, by uid; fed by watches of every kind. */
export class OwnershipGraph {
  readonly #objects = new Map<string, OwnedObject>();
  readonly #dependents = new MultiMap<string, string>();

  get(uid: string): OwnedObject | undefined {
    return this.#objects.get(uid);
  }

  dependentsOf(uid: string): OwnedObject[] {
    return this.#dependents.get(uid).flatMap((each) => this.#objects.get(each) ?? []);
  }

  objects(): IterableIterator<OwnedObject> {
    return this.#objects.values();
  }

  put(kind: ApiResource, { metadata }: KubeObject): OwnedObject | undefined {
    const { uid, name, namespace } = metadata;
    if (!uid || !name) return undefined;
    this.#unlink(uid);
    const object: OwnedObject = {
      kind,
      uid,
      namespace,
      name,
      owners: metadata.ownerReferences ?? [],
      finalizers: metadata.finalizers ?? [],
      deleting: metadata.deletionTimestamp !== undefined,
    };
    this.#objects.set(uid, object);
    for (const owner of object.owners) this.#dependents.add(owner.uid, uid);
    return object;
  }

  delete(uid: string): void {
    this.#unlink(uid);
    this.#objects.delete(uid);
  }

  #unlink(uid: string): void {
    for (const { uid: owner } of this.#objects.get(uid)?.owners ?? [])
      this.#dependents.delete(owner, uid);
  }
}
