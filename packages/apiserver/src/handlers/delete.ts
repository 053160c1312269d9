import { type UnknownObject } from "@spry/kube";
import { timestampOf } from "../timestamp.ts";
import { type Engine } from "../engine.ts";
import { type ResourceRequest } from "../request.ts";
import { badRequest, conflict, invalidOptions, notFound } from "../errors.ts";
import { type StoredObject } from "../store/stored-object.ts";
import { StaleWriteError } from "../store/store.ts";
import { isLarge, turn } from "../turns.ts";
import { integerOf } from "./list-options.ts";
import { selectionOf } from "./selection.ts";
import { placeOf } from "./write.ts";

/** `meta/v1 DeleteOptions`. */
export interface DeleteOptions {
  gracePeriodSeconds?: number;
  propagationPolicy?: string;
  orphanDependents?: boolean;
  preconditions?: { uid?: string; resourceVersion?: string };
  dryRun?: string[];
}

export interface Deletion {
  object: UnknownObject;
  /** False while finalizers or a grace period keep the object. */
  gone: boolean;
}

/** Of a collection. Writes of the same turn of the event loop share a sync of the disk. */
const deletedAtOnce = 64;
const maxAttempts = 20;
const orphanFinalizer = "orphan";
const foregroundFinalizer = "foregroundDeletion";

/** Options from the body and, where that is silent, from the query. */
export function deleteOptionsOf(body: DeleteOptions, query: URLSearchParams): DeleteOptions {
  const grace = integerOf(query, "gracePeriodSeconds");
  const policy = query.get("propagationPolicy");
  const options = { ...body };
  if (grace !== undefined) options.gracePeriodSeconds ??= grace;
  if (policy !== null) options.propagationPolicy ??= policy;
  if (query.get("orphanDependents") === "true") options.orphanDependents ??= true;
  const { gracePeriodSeconds, propagationPolicy } = options;
  if (gracePeriodSeconds !== undefined && !Number.isSafeInteger(gracePeriodSeconds)) {
    throw badRequest("gracePeriodSeconds must be a whole number");
  }
  if (propagationPolicy && !["Foreground", "Background", "Orphan"].includes(propagationPolicy)) {
    throw invalidOptions("DeleteOptions", (errors) =>
      errors.unsupported("propagationPolicy", propagationPolicy, [
        "Foreground",
        "Background",
        "Orphan",
        "nil",
      ]),
    );
  }
  if (propagationPolicy && options.orphanDependents !== undefined) {
    throw invalidOptions("DeleteOptions", (errors) =>
      errors.invalid(
        "propagationPolicy",
        propagationPolicy,
        "orphanDependents and deletionPropagation cannot be both set",
      ),
    );
  }
  return options;
}

/** Deletes an object, or marks it for those who have to finish first. */
export async function deleteObject(
  engine: Engine,
  request: ResourceRequest,
  options: DeleteOptions,
): Promise<Deletion> {
  engine.admission.checkDeletion(request);
  for (let attempt = 0; ; attempt++) {
    const stored = engine.store.get(placeOf(request));
    if (!stored) throw notFound(request.type, request.name);
    const large = isLarge(stored.json);
    if (large) await turn();
    warnOfPolicy(request, options);
    checkPreconditions(request, stored.object, options);
    if (large) await turn();
    const old = await engine.conversions.presented(request.type, stored);
    await engine.admission.validate(request, "DELETE", undefined, old, options);
    if (large) await turn();
    try {
      return await tryDelete(engine, request, options, stored);
    } catch (error) {
      if (!(error instanceof StaleWriteError)) throw error;
      if (attempt >= maxAttempts) throw conflict(request.type, request.name);
    }
  }
}

/** Deletes what the selectors of the request match; resolves with what was there. */
export async function deleteCollection(
  engine: Engine,
  request: ResourceRequest,
  options: DeleteOptions,
): Promise<StoredObject[]> {
  const { type, namespace } = request;
  const selection = selectionOf(request);
  const found = engine.store
    .list(type.collection, namespace)
    .filter((stored) => selection.matches(stored));
  const left = found.values();
  const deleteAll = async () => {
    for (const stored of left) {
      const one = { ...request, namespace: stored.namespace, name: stored.name };
      try {
        await deleteObject(engine, one, options);
      } catch (error) {
        if ((error as { code?: number }).code !== 404) throw error;
      }
    }
  };
  // Each of them holds a copy of its object.
  await Promise.all(Array.from({ length: deletedAtOnce }, deleteAll));
  return found;
}

/** Throws a `StatusError` 409 for an object that is not the one, or no longer as, the client expects. */
export function checkPreconditions(
  { type, name }: ResourceRequest,
  { metadata }: UnknownObject,
  { preconditions }: DeleteOptions,
): void {
  const { uid, resourceVersion } = preconditions ?? {};
  if (uid !== undefined && uid !== metadata.uid) {
    const cause = `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`;
    throw conflict({ group: type.group, plural: type.kind }, name, cause);
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    const cause = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`;
    throw conflict({ group: type.group, plural: type.kind }, name, cause);
  }
}

async function tryDelete(
  engine: Engine,
  request: ResourceRequest,
  options: DeleteOptions,
  stored: StoredObject,
): Promise<Deletion> {
  const { type } = request;
  const next = stored.copy();
  const { metadata } = next;
  const grace = graceOf(type.kind, next, options);
  const finalizers = finalizersAfter(metadata.finalizers ?? [], effective(request, options));
  if (finalizers.length > 0) metadata.finalizers = finalizers;
  else delete metadata.finalizers;
  const waits = finalizers.length > 0 || grace > 0 || holdsNamespace(next);
  if (isLarge(stored.json)) await turn();
  if (!waits || request.dryRun) {
    // The response has Pods, and objects that still wait, with the time of their deletion.
    if (waits || type.kind === "Pod") mark(engine, next, grace, stored.object);
  }
  if (request.dryRun)
    return { object: await engine.conversions.presentedWith(type, stored, next), gone: !waits };
  if (!waits) {
    if (type.collection === "/services") engine.addresses.release(next);
    const removed = await engine.store.remove(stored, next);
    return {
      object: await engine.conversions.presentedWith(type, stored, removed.object),
      gone: true,
    };
  }
  const marked = mark(engine, next, grace, stored.object);
  if (!marked && finalizers.length === (stored.object.metadata.finalizers ?? []).length) {
    return { object: await engine.conversions.presentedWith(type, stored, next), gone: false };
  }
  const written = await engine.store.put(stored, stored, next);
  return {
    object: await engine.conversions.presentedWith(type, stored, written.object),
    gone: false,
  };
}

/** The kind's own policy, where the client names none. */
function ownPolicyOf({ type }: ResourceRequest, options: DeleteOptions) {
  const isSaid = options.propagationPolicy || options.orphanDependents !== undefined;
  return isSaid ? undefined : type.strategy.deletionPolicy;
}

function warnOfPolicy(request: ResourceRequest, options: DeleteOptions): void {
  const own = ownPolicyOf(request, options);
  if (own && !request.warnings.includes(own.warning)) request.warnings.push(own.warning);
}

function effective(request: ResourceRequest, options: DeleteOptions): DeleteOptions {
  const own = ownPolicyOf(request, options);
  return own ? { ...options, propagationPolicy: own.policy } : options;
}

/** Sets the time of deletion; false when nothing new is said. A grace period only ever shrinks. */
function mark(engine: Engine, next: UnknownObject, grace: number, old: UnknownObject): boolean {
  const { metadata } = next;
  const previous = old.metadata.deletionGracePeriodSeconds;
  if (old.metadata.deletionTimestamp && (previous ?? 0) <= grace) return false;
  const begun = old.metadata.deletionTimestamp
    ? Date.parse(old.metadata.deletionTimestamp) - (previous ?? 0) * 1000
    : engine.clock.now();
  metadata.deletionTimestamp = timestampOf(begun + grace * 1000);
  // These go when they are empty, whatever time that takes.
  if (next.kind !== "Namespace" && next.kind !== "CustomResourceDefinition") {
    metadata.deletionGracePeriodSeconds = grace;
    if (metadata.generation) metadata.generation++;
  }
  if (next.kind === "Namespace") next.status = { ...(next.status as object), phase: "Terminating" };
  return true;
}

interface PodLike {
  spec?: { nodeName?: string; terminationGracePeriodSeconds?: number };
  status?: { phase?: string };
}

/** Seconds that a Pod's node needs to stop it; no other kind has such a time. */
function graceOf(kind: string, object: UnknownObject, options: DeleteOptions): number {
  if (kind !== "Pod") return 0;
  const { spec, status } = object as PodLike;
  if (!spec?.nodeName || status?.phase === "Failed" || status?.phase === "Succeeded") return 0;
  const { metadata } = object;
  const asked = options.gracePeriodSeconds ?? spec.terminationGracePeriodSeconds ?? 30;
  if (asked === 0) return 0;
  const seconds = Math.max(1, asked);
  const running = metadata.deletionTimestamp ? metadata.deletionGracePeriodSeconds : undefined;
  return running === undefined ? seconds : Math.min(seconds, running);
}

function finalizersAfter(finalizers: string[], options: DeleteOptions): string[] {
  const others = finalizers.filter(
    (each) => each !== orphanFinalizer && each !== foregroundFinalizer,
  );
  const policy = options.propagationPolicy;
  if (policy === "Orphan" || options.orphanDependents) return [...others, orphanFinalizer];
  if (policy === "Foreground") return [...others, foregroundFinalizer];
  return policy === "Background" ? others : finalizers;
}

function holdsNamespace({ kind, spec }: UnknownObject): boolean {
  if (kind !== "Namespace") return false;
  return ((spec as { finalizers?: string[] } | undefined)?.finalizers?.length ?? 0) > 0;
}
