import { annotations, functionRevisions, managedBy, knativeNames } from "@spry/function";
import { isControlledBy, isNotFound } from "@spry/kube";
import { type Deps, type Draft } from "./stage.ts";

/**
 * Marks the revision that has become ready, in the history: a rollback returns to a version that has served, not to one
 * whose code never loaded. What its data says never changes; the mark is an annotation.
 */
export async function markServed(
  { fn, key, namespace, name, status }: Draft,
  deps: Deps,
): Promise<void> {
  const { revision } = status;
  if (revision === undefined) return;
  const known = deps.caches.revisions
    .byIndex("function", key)
    .find((each) => each.revision === revision && isControlledBy(each, fn));
  if (!known || known.metadata.annotations?.[annotations.served]) return;
  try {
    await deps.client.patch(
      functionRevisions,
      { namespace, name: known.metadata.name ?? knativeNames.revision(name, revision) },
      { metadata: { annotations: { [annotations.served]: "true" } } },
      { fieldManager: managedBy },
    );
  } catch (error) {
    // The history is kept short.
    if (!isNotFound(error)) throw error;
  }
}
