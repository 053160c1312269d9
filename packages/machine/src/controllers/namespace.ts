import {
  Controller,
  isConflict,
  isNotFound,
  type KubeObject,
  type Namespace,
  resources,
} from "@spry/kube";
import { type ApiResource, discoverResources } from "./api-resources.ts";
import { type ControllerContext } from "./context.ts";

const retryMs = 100;

/** Empties a Namespace that is being deleted, then lets it go. */
export function createNamespaceController(context: ControllerContext): Controller {
  const { caches, clock, log } = context;
  const controller = new Controller({
    name: "namespace",
    workers: 2,
    clock,
    log,
    reconcile: (name, signal) => reconcileNamespace(context, name, signal),
  });
  caches.namespaces.onChange(({ object }) => {
    if (object.metadata.deletionTimestamp) controller.enqueue(object.metadata.name ?? "");
  });
  return controller;
}

async function reconcileNamespace(
  context: ControllerContext,
  name: string,
  signal: AbortSignal,
): Promise<{ requeueAfterMs: number } | void> {
  const { client, caches } = context;
  const namespace = caches.namespaces.get(name);
  if (!namespace?.metadata.deletionTimestamp) return;
  const left = await deleteContent(context, name, signal);
  // What has finalizers goes when others have done their part; Pods go when they have ended.
  if (left > 0) return { requeueAfterMs: retryMs };
  const finalizers = namespace.spec?.finalizers?.filter((each) => each !== "kubernetes") ?? [];
  if (finalizers.length === (namespace.spec?.finalizers?.length ?? 0)) return;
  const next: Namespace = { ...namespace, spec: { ...namespace.spec, finalizers } };
  try {
    await client.update(resources.namespaces, next, { subresource: "finalize" });
  } catch (error) {
    if (isConflict(error)) return { requeueAfterMs: retryMs };
    if (!isNotFound(error)) throw error;
  }
}

/** Asks for the deletion of everything; returns how much is still there. */
async function deleteContent(
  { client }: ControllerContext,
  namespace: string,
  signal: AbortSignal,
): Promise<number> {
  const kinds = await discoverResources(client, signal);
  let left = 0;
  // Pods last: their owners are gone by then, and no controller makes new ones.
  const ordered = kinds
    .filter(
      ({ namespaced, verbs }) => namespaced && verbs.includes("delete") && verbs.includes("list"),
    )
    .sort((a, b) => Number(a.kind === "Pod") - Number(b.kind === "Pod"));
  for (const kind of ordered) {
    const { items } = await client.list(kind, { namespace, signal });
    left += items.length;
    for (const object of items)
      if (!object.metadata.deletionTimestamp) await deleteObject({ client }, kind, object);
  }
  return left;
}

async function deleteObject(
  { client }: Pick<ControllerContext, "client">,
  kind: ApiResource,
  { metadata }: KubeObject,
): Promise<void> {
  const { namespace, name = "", uid = "" } = metadata;
  const preconditions = { uid };
  await client
    .delete(kind, { namespace, name }, { preconditions, propagationPolicy: "Background" })
    .catch((error: unknown) => {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    });
}
