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
  const write = (force: boolean) =>
    client.apply(resource, object, { fieldManager, force, dryRun: options.dryRun ?? false });
  try {
    return await write(options.forceConflicts ?? false);
  } catch (error) {
    if (!isOwnConflict(error)) throw error;
    return write(true);
  }
}

/** `spry rollback` and `spry traffic` write fields, too: what the same user applies afterwards replaces that. */
function isOwnConflict(error: unknown): boolean {
  if (!isConflict(error)) return false;
  const { causes = [] } = (error as StatusError).status.details ?? {};
  const own = `conflict with "${fieldManager}"`;
  return causes.length > 0 && causes.every(({ message }) => message?.startsWith(own));
}
