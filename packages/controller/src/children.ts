import { annotations, type Function, functions, labels, managedBy } from "@spry/function";
import {
  controllerRef,
  type Informer,
  isControlledBy,
  isForbidden,
  isNotFound,
  type KubeClient,
  type KubeObject,
  type ObjectMeta,
  type Resource,
} from "@spry/kube";
import { contains } from "./contains.ts";
import { digestOf } from "./digest.ts";

/** A desired child, without its owner and the digest. */
export interface DesiredChild extends KubeObject {
  metadata: ObjectMeta & { name: string; namespace: string };
}

/** The name that a child needs belongs to an object that this controller did not create. */
export class ForeignObjectError extends Error {
  override readonly name = "ForeignObjectError";

  constructor(kind: string, name: string) {
    super(
      `${kind} ${name} exists and does not belong to the Function: ` +
        `delete it, or give the Function another name`,
    );
  }
}

/** Whether a foreign object, a quota or a policy blocks the write: that can change with time. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ForeignObjectError || isForbidden(error);
}

/**
 * Brings the child to its desired state. Nothing is written if it already is: its annotation says that
 * it was last written from the same desired object, and it still contains that. The digest alone would
 * miss what others changed, the comparison alone what is no longer desired. `written` may carry over what the observed
 * child has.
 */
export async function ensureChild<T extends KubeObject>(
  client: KubeClient,
  informer: Informer<T>,
  fn: Function,
  desired: T & DesiredChild,
  options: { written?: (complete: T, observed: T) => T } = {},
): Promise<{ object: T; change: "none" | "created" | "updated" }> {
  const { resource } = informer;
  const { namespace, name } = desired.metadata;
  const complete = stamped(desired, fn);
  // Only children with our label are cached: what else has the name must not be overwritten.
  const observed =
    informer.get(`${namespace}/${name}`) ??
    (await getIfThere(client, resource, { namespace, name }));
  if (observed && !isControlledBy(observed, fn)) await removeLeftover(client, resource, observed);
  if (observed?.metadata.deletionTimestamp) {
    throw new Error(`waiting for the deletion of the old ${resource.kind} ${name}`);
  }
  const last = observed?.metadata.annotations?.[annotations.desired];
  if (observed && last === complete.metadata.annotations?.[annotations.desired]) {
    if (contains(observed, complete)) return { object: observed, change: "none" };
  }
  const written = (observed && options.written?.(complete, observed)) ?? complete;
  const object = await client.apply(resource, written, { fieldManager: managedBy });
  return { object, change: observed ? "updated" : "created" };
}

/** Whether the child was last written from this desired object. */
export function isFrom(observed: KubeObject | undefined, desired: KubeObject): boolean {
  return observed?.metadata.annotations?.[annotations.desired] === digestOfDesired(desired);
}

const digests = new WeakMap<KubeObject, string>();

/** Needed several times in a pass, and computed once: a desired object does not change. */
function digestOfDesired(desired: KubeObject): string {
  let digest = digests.get(desired);
  if (digest === undefined) digests.set(desired, (digest = digestOf(desired)));
  return digest;
}

/** The child with its owner, and with the digest of what it should be. */
export function stamped<T extends KubeObject>(desired: T, fn: Function): T {
  const digest = digestOfDesired(desired);
  return {
    ...desired,
    metadata: {
      ...desired.metadata,
      annotations: { ...desired.metadata.annotations, [annotations.desired]: digest },
      ownerReferences: [controllerRef(functions, fn)],
    },
  };
}

/** A child of an earlier Function of this name goes; what is not ours at all stays. */
export async function removeLeftover(
  client: KubeClient,
  resource: Resource,
  object: KubeObject,
): Promise<never> {
  const { namespace, name = "", uid } = object.metadata;
  if (object.metadata.labels?.[labels.managedBy] !== managedBy) {
    throw new ForeignObjectError(resource.kind, name);
  }
  await deleteIfThere(client, resource, object);
  throw new Error(
    `waiting for the deletion of ${resource.kind} ${namespace}/${name} (${uid}), which belongs to an earlier Function`,
  );
}

/** Deletes exactly this object, and nothing that took its name meanwhile. */
export async function deleteIfThere(client: KubeClient, resource: Resource, object: KubeObject) {
  const { namespace, name = "", uid } = object.metadata;
  if (object.metadata.deletionTimestamp) return;
  try {
    await client.delete(
      resource,
      { namespace, name },
      { propagationPolicy: "Background", ...(uid ? { preconditions: { uid } } : {}) },
    );
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

/** The object; undefined where it does not exist. */
export async function getIfThere<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  target: { namespace: string; name: string },
): Promise<T | undefined> {
  try {
    return await client.get(resource, target);
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
