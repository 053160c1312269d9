import { functions } from "@spry/function";
import {
  isConflict,
  type KubeClient,
  type KubeObject,
  type Resource,
  type StatusError,
} from "@spry/kube";

/** Of all that the user's own commands write. */
export const fieldManager = "spry-cli";

/**
 * Writes an object by server-side apply, as the manager of all of the user's own commands. Throws a conflict (409) where another
 * tool owns a field, unless `forceConflicts`.
 */
export async function applyObject<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  object: T,
  options: { forceConflicts?: boolean; dryRun?: boolean },
): Promise<T> {
  const applied = withoutStatus(resource, object);
  const write = (force: boolean) =>
    client.apply(resource, applied, { fieldManager, force, dryRun: options.dryRun ?? false });
  try {
    return await write(options.forceConflicts ?? false);
  } catch (error) {
    if (!isOwnConflict(error)) throw error;
    return write(true);
  }
}

/**
 * What `spry get -o yaml` prints can be applied again: the server does not write a status that comes this way, but a value that
 * has changed since would be a conflict.
 */
function withoutStatus<T extends KubeObject>({ group, plural }: Resource<T>, object: T): T {
  if (group !== functions.group || plural !== functions.plural || !("status" in object))
    return object;
  const desired = { ...object };
  delete desired.status;
  return desired;
}

/** `spry rollback` and `spry traffic` write fields, too: what the same user applies afterwards replaces that. */
function isOwnConflict(error: unknown): boolean {
  if (!isConflict(error)) return false;
  const { causes = [] } = (error as StatusError).status.details ?? {};
  const own = `conflict with "${fieldManager}"`;
  return causes.length > 0 && causes.every(({ message }) => message?.startsWith(own));
}
