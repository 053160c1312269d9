import { type KubeObject, type OwnerReference } from "./objects.ts";
import { apiVersionOf, type Resource } from "./resources.ts";

/**
 * The owner reference by which an object is managed by `owner` and deleted with it. The kind comes
 * from the resource, because items of a list carry none.
 */
export function controllerRef(resource: Resource, owner: KubeObject): OwnerReference {
  const { name, uid } = owner.metadata;
  if (!name || !uid) throw new Error(`owner ${resource.kind} has no name or uid yet`);
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** The one reference that says who manages the object. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller === true);
}

/** By uid: an owner that was deleted and created again by the same name is another one. */
export function isControlledBy(object: KubeObject, owner: KubeObject): boolean {
  const uid = controllerOf(object)?.uid;
  return uid !== undefined && uid === owner.metadata.uid;
}
