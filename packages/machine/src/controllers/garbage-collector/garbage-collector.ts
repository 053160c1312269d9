import {
  Controller,
  Informer,
  isNotFound,
  type KubeObject,
  type OwnerReference,
  resources,
} from "@spry/kube";
import { type ApiResource, discoverResources, findKind } from "../api-resources.ts";
import { type ControllerContext } from "../context.ts";
import { KindWatches } from "./kind-watches.ts";
import { type OwnedObject, OwnershipGraph } from "./ownership-graph.ts";

const foreground = "foregroundDeletion";
const orphan = "orphan";
const discoveryRetryMs = 200;

/** An owner that is gone stays gone: a uid is never given twice. */
const maxAbsent = 10_000;

interface Collector {
  context: ControllerContext;
  graph: OwnershipGraph;
  kinds: readonly ApiResource[];
  absent: Set<string>;
}

/**
 * Deletes objects whose owners no longer exist (Kubernetes documentation, "Garbage Collection"): in the background,
 * in the foreground (dependents first) or not at all (`orphan`), as the owner's deletion specified. An owner
 * reference means the object with that uid; an object that only has the name is not the owner.
 */
export function createGarbageCollector(
  context: ControllerContext,
): Controller & { watch: (signal: AbortSignal) => Promise<void> } {
  const { client, clock, log, caches } = context;
  const collector: Collector = {
    context,
    graph: new OwnershipGraph(),
    kinds: [],
    absent: new Set(),
  };
  const { graph } = collector;
  const controller = new Controller({
    name: "garbage-collector",
    workers: 4,
    clock,
    log,
    reconcile: (uid) => collect(collector, uid),
  });
  const watches = new KindWatches({
    client,
    clock,
    log,
    shared: Object.values(caches) as unknown as Informer<KubeObject>[],
    onPut(kind, object) {
      const before = graph.get(object.metadata.uid ?? "");
      const put = graph.put(kind, object);
      if (!put) return;
      if (put.owners.length > 0 || put.deleting) controller.enqueue(put.uid);
      // The owner, or one of before, may be waiting for this one to go, or to stop blocking.
      for (const { uid } of [...put.owners, ...(before?.owners ?? [])])
        if (graph.get(uid)?.deleting) controller.enqueue(uid);
    },
    onDelete(uid) {
      const gone = graph.get(uid);
      remember(collector.absent, uid);
      graph.delete(uid);
      for (const dependent of graph.dependentsOf(uid)) controller.enqueue(dependent.uid);
      for (const owner of gone?.owners ?? []) controller.enqueue(owner.uid);
    },
  });

  let discovery: Promise<void> = Promise.resolve();
  const look = async (signal: AbortSignal) => {
    collector.kinds = await discoverResources(client, signal);
    await watches.set(collector.kinds, signal);
    // Owners that could not be looked up before may be known now.
    for (const { uid, owners } of graph.objects()) if (owners.length > 0) controller.enqueue(uid);
  };
  const discover = (signal: AbortSignal, attempts = 1) => {
    // One at a time: an earlier answer must not overwrite a later one.
    discovery = discovery
      .then(() => look(signal))
      .catch((error: unknown) => {
        if (signal.aborted) return;
        log.warn({ error: String(error) }, "discovering kinds failed, trying again");
        clock.after(
          discoveryRetryMs * Math.min(attempts, 50),
          () => void discover(signal, attempts + 1),
        );
      });
    return discovery;
  };
  const watch = async (signal: AbortSignal) => {
    // Each change, because a kind can be used only once its condition `Established` is true.
    const definitions = new Informer(client, resources.customResourceDefinitions, { clock, log });
    definitions.onChange(() => {
      if (definitions.hasSynced) void discover(signal);
    });
    void definitions.run(signal);
    await definitions.synced;
    await discover(signal);
  };
  return Object.assign(controller, { watch });
}

async function collect(collector: Collector, uid: string): Promise<void> {
  const object = collector.graph.get(uid);
  if (!object) return;
  if (object.deleting) {
    if (object.finalizers.includes(orphan)) return orphanDependents(collector, object);
    if (object.finalizers.includes(foreground)) return deleteDependents(collector, object);
    return;
  }
  if (object.owners.length === 0) return;
  const verdicts = await Promise.all(
    object.owners.map(async (owner) => ({ owner, state: await stateOf(collector, object, owner) })),
  );
  const solid = verdicts.filter(({ state }) => state === "present");
  const waiting = verdicts.filter(({ state }) => state === "waiting");
  if (solid.length > 0) {
    const kept = solid.map(({ owner }) => owner);
    if (kept.length < object.owners.length) await writeOwners(collector, object, kept);
    return;
  }
  const hasDependents = collector.graph.dependentsOf(uid).length > 0;
  const policy = waiting.length > 0 && hasDependents ? "Foreground" : "Background";
  await deleteObject(collector, object, policy);
}

/** `waiting`: the owner is being deleted and waits for its dependents to go first. */
async function stateOf(
  collector: Collector,
  dependent: OwnedObject,
  owner: OwnerReference,
): Promise<"present" | "waiting" | "absent"> {
  const { graph, absent, context } = collector;
  const known = graph.get(owner.uid);
  // An owner in another namespace is none: a reference cannot reach there.
  if (known && (!known.namespace || known.namespace === dependent.namespace))
    return known.deleting && known.finalizers.includes(foreground) ? "waiting" : "present";
  if (absent.has(owner.uid)) return "absent";
  const kind = findKind(collector.kinds, owner.apiVersion, owner.kind);
  // A kind that is not served (yet) may come back with its objects: never delete because of that.
  if (!kind) return "present";
  const namespace = kind.namespaced ? dependent.namespace : undefined;
  try {
    const live = await context.client.get(kind, { namespace, name: owner.name });
    if (live.metadata.uid === owner.uid) return "present";
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  remember(absent, owner.uid);
  return "absent";
}

/** Foreground: dependents that block their owner go first, then the owner itself. */
async function deleteDependents(collector: Collector, owner: OwnedObject): Promise<void> {
  const dependents = collector.graph.dependentsOf(owner.uid);
  const blocks = (dependent: OwnedObject) =>
    dependent.owners.some(({ uid, blockOwnerDeletion }) => uid === owner.uid && blockOwnerDeletion);
  for (const dependent of dependents) {
    if (dependent.deleting) continue;
    const others = dependent.owners.filter(({ uid }) => uid !== owner.uid);
    const states = await Promise.all(others.map((each) => stateOf(collector, dependent, each)));
    if (states.includes("present")) await writeOwners(collector, dependent, others);
    else {
      const nested = collector.graph.dependentsOf(dependent.uid).length > 0;
      await deleteObject(collector, dependent, nested ? "Foreground" : "Background");
    }
  }
  if (!dependents.some(blocks)) await dropFinalizer(collector, owner, foreground);
}

async function orphanDependents(collector: Collector, owner: OwnedObject): Promise<void> {
  for (const dependent of collector.graph.dependentsOf(owner.uid))
    await writeOwners(
      collector,
      dependent,
      dependent.owners.filter(({ uid }) => uid !== owner.uid),
    );
  await dropFinalizer(collector, owner, orphan);
}

async function dropFinalizer(
  { context }: Collector,
  object: OwnedObject,
  finalizer: string,
): Promise<void> {
  // From the live object: a list is patched as a whole, and another's finalizer must survive.
  await ifThere(async () => {
    const { metadata } = await context.client.get(object.kind, object);
    if (metadata.uid !== object.uid || !metadata.finalizers?.includes(finalizer)) return;
    const finalizers = metadata.finalizers.filter((each) => each !== finalizer);
    const { resourceVersion, uid } = metadata;
    await context.client.patch(object.kind, object, {
      metadata: { uid, resourceVersion, finalizers },
    });
  });
}

async function writeOwners(
  { context }: Collector,
  object: OwnedObject,
  kept: readonly OwnerReference[],
): Promise<void> {
  const keep = new Set(kept.map(({ uid }) => uid));
  await ifThere(async () => {
    const { metadata } = await context.client.get(object.kind, object);
    if (metadata.uid !== object.uid) return;
    const known = new Set(object.owners.map(({ uid }) => uid));
    const ownerReferences = (metadata.ownerReferences ?? []).filter(
      ({ uid }) => keep.has(uid) || !known.has(uid),
    );
    const { resourceVersion, uid } = metadata;
    await context.client.patch(object.kind, object, {
      metadata: { uid, resourceVersion, ownerReferences },
    });
  });
}

async function deleteObject(
  { context }: Collector,
  object: OwnedObject,
  propagationPolicy: "Foreground" | "Background",
): Promise<void> {
  const preconditions = { uid: object.uid };
  await ifThere(() =>
    context.client.delete(object.kind, object, { propagationPolicy, preconditions }),
  );
}

/** Gone already is what was wanted; a conflict is retried from the latest state. */
async function ifThere(write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

function remember(absent: Set<string>, uid: string): void {
  absent.add(uid);
  if (absent.size > maxAbsent) absent.delete(absent.values().next().value ?? "");
}
