import {
  Controller,
  isConflict,
  isNotFound,
  type KubeObject,
  type Namespace,
  resources,
  StatusError,
} from "@spry/kube";
import { type ApiResource, discoverResources } from "./api-resources.ts";
import { type ControllerContext } from "./context.ts";
import { type NamespaceContent, withConditions } from "./namespace-conditions.ts";

const retryMs = 100;
const maxRetryMs = 5_000;

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
  const { client, caches, clock } = context;
  const namespace = caches.namespaces.get(name);
  if (!namespace?.metadata.deletionTimestamp) return;
  const content = await deleteContent(context, name, signal);
  const status = withConditions(namespace, content, clock);
  if (status) await writeStatus(context, { ...namespace, status });
  // What has finalizers goes when others have done their part; Pods go when they have ended.
  if (content.remaining.size > 0 || content.failures.length > 0)
    return { requeueAfterMs: pauseMs(namespace, clock.now()) };
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

/** One that waits for others is looked at less and less often: each time all kinds are listed. */
function pauseMs({ metadata }: Namespace, now: number): number {
  const sinceMs = now - Date.parse(metadata.deletionTimestamp ?? "");
  return Math.min(Math.max(retryMs, sinceMs / 20), maxRetryMs);
}

/** Asks for the deletion of everything; returns what is still there. What cannot be deleted prevents nothing else. */
async function deleteContent(
  { client }: ControllerContext,
  namespace: string,
  signal: AbortSignal,
): Promise<NamespaceContent> {
  const kinds = await discoverResources(client, signal);
  const content: NamespaceContent = { remaining: new Map(), finalizers: new Map(), failures: [] };
  // Pods last: their owners are gone by then, and no controller makes new ones.
  const ordered = kinds
    .filter(
      ({ namespaced, verbs }) => namespaced && verbs.includes("delete") && verbs.includes("list"),
    )
    .sort((a, b) => Number(a.kind === "Pod") - Number(b.kind === "Pod"));
  for (const kind of ordered) {
    const { items } = await client.list(kind, { namespace, signal });
    if (items.length === 0) continue;
    content.remaining.set(`${kind.plural}.${kind.group}`, items.length);
    for (const object of items) {
      for (const finalizer of object.metadata.finalizers ?? [])
        content.finalizers.set(finalizer, (content.finalizers.get(finalizer) ?? 0) + 1);
      if (object.metadata.deletionTimestamp) continue;
      await deleteObject({ client }, kind, object).catch((error: unknown) => {
        if (!(error instanceof StatusError)) throw error;
        content.failures.push(error.message);
      });
    }
  }
  return content;
}

async function writeStatus({ client }: ControllerContext, namespace: Namespace): Promise<void> {
  await client
    .update(resources.namespaces, namespace, { subresource: "status" })
    .catch((error: unknown) => {
      if (!isConflict(error) && !isNotFound(error)) throw error;
    });
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
