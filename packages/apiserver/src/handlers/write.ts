import { randomUUID } from "node:crypto";
import { deepEqual, timestamp, type UnknownObject } from "@spry/kube";
import { sameManagedFields, stepsAfterUpdate } from "../apply/managed-fields.ts";
import { preventEscalation } from "../authorization/escalation.ts";
import { type Engine } from "../engine.ts";
import { type ResourceRequest } from "../request.ts";
import { copyOf } from "../json-copy.ts";
import { alreadyExists, badRequest, conflict, notFound, plainFailure } from "../errors.ts";
import { FieldErrors } from "../field-errors.ts";
import { checkShape } from "../http/request-body.ts";
import { groupVersionOf, type ResourceType } from "../resources/resource-type.ts";
import { validateMetadata } from "../resources/metadata.ts";
import { completed, storable } from "../schema/complete-object.ts";
import { validateCustomObject } from "../schema/custom-object.ts";
import { type StoredObject } from "../store/stored-object.ts";
import { withName } from "./generated-name.ts";
import { growthOf, withoutRoom } from "./growth.ts";
import { asToldByScale } from "./scale.ts";
import { type Place, StaleWriteError } from "../store/store.ts";
import { inTurns, isLarge, turn } from "../turns.ts";

const maxAttempts = 20;

export function placeOf({ type, namespace, name }: ResourceRequest): Place {
  return { collection: type.collection, namespace, name };
}

/** Managed fields that the caller has worked out already (server-side apply). */
interface WriteOptions {
  tracked?: boolean;
}

/** Creates the object; resolves with it when it is on disk. Readers share it: it is not to be changed. */
export async function createObject(
  engine: Engine,
  request: ResourceRequest,
  object: UnknownObject,
  options: WriteOptions = {},
): Promise<UnknownObject> {
  const { type } = request;
  const now = timestamp(engine.clock);
  const { metadata } = object;
  engine.admission.checkNamespace(request);
  if (metadata.resourceVersion) {
    throw plainFailure("resourceVersion should not be set on objects to be created");
  }
  if (type.namespaced) {
    if ((metadata.namespace ??= request.namespace) !== request.namespace) {
      throw badRequest(
        "the namespace of the provided object does not match the namespace sent on the request",
      );
    }
  } else delete metadata.namespace;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete metadata.uid;
  delete metadata.creationTimestamp;
  delete (metadata as { selfLink?: string }).selfLink;
  if (type.custom && type.hasStatus) delete object.status;
  const wanted = completed(type, object);
  if (request.large) await turn();
  // Fields that admission and the server itself set from here on have no owner.
  if (!options.tracked) await track(request, undefined, wanted, now);
  const mutated = await engine.admission.mutate(request, "CREATE", wanted, undefined);
  return withName(mutated, (named) => storeNew(engine, request, named, now));
}

/** The server's own part of a creation, from an object that has its name. */
async function storeNew(
  engine: Engine,
  request: ResourceRequest,
  object: UnknownObject,
  now: string,
): Promise<UnknownObject> {
  const { type } = request;
  setSystemFields(type, object, now);
  if (request.large) await turn();
  let admitted = completed(type, object);
  preventEscalation(engine.authorizer, request, admitted, undefined);
  type.strategy.prepare?.(admitted, { now });
  if (request.large) await turn();
  validate(engine, request, admitted, undefined);
  request.warnings.push(...(type.strategy.warnings?.(admitted, undefined) ?? []));
  if (request.large) await turn();
  admitted = storable(type, admitted);
  // As what is read back from a store: some defaults follow from what the server has set.
  type.strategy.defaults?.(admitted);
  const undo = engine.addresses.allocate(type, admitted);
  try {
    await engine.admission.validate(request, "CREATE", admitted, undefined);
    if (request.large) await turn();
    const place = { ...placeOf(request), name: admitted.metadata.name ?? "" };
    const existing = engine.store.get(place);
    if (existing) {
      const waits = existing.object.metadata.deletionTimestamp !== undefined;
      throw alreadyExists(type, place.name, waits);
    }
    if (request.dryRun) {
      engine.admission.charge(request, "CREATE", admitted, undefined);
      undo?.();
      return await engine.conversions.asIfStored(type, admitted);
    }
    const kept = await engine.conversions.toStorage(type, admitted);
    if (engine.store.get(place)) throw alreadyExists(type, place.name);
    engine.admission.charge(request, "CREATE", kept, undefined);
    const growth = growthOf(request.user, kept, undefined);
    const stored = await engine.store.put(place, undefined, kept, growth);
    return await engine.conversions.seen(type, stored);
  } catch (error) {
    undo?.();
    if (error instanceof StaleWriteError) throw alreadyExists(type, admitted.metadata.name ?? "");
    throw withoutRoom(request, admitted.metadata.name ?? "", error);
  }
}

/** What only the server gives. */
function setSystemFields(
  { strategy }: ResourceType,
  { metadata }: UnknownObject,
  now: string,
): void {
  metadata.uid = randomUUID();
  metadata.creationTimestamp = now;
  if (strategy.generation) metadata.generation = 1;
}

export interface Update {
  /** Makes the wanted object from a copy of the current one. */
  modify(current: UnknownObject): UnknownObject | Promise<UnknownObject>;
  /** Set when `modify` works out managed fields itself. */
  tracked?: boolean;
  /** The kinds of fields that this request may change: "" all but status. */
  subresource: string;
  /** What the client expects: a write of something older fails instead of being tried again. */
  uid?: string | undefined;
}

/**
 * Changes an object; resolves with it when the change is on disk. Readers share it: it is not to be changed. Tries again
 * when another writer came in between, unless the wanted object names the resourceVersion that it was made from.
 */
export async function updateObject(
  engine: Engine,
  request: ResourceRequest,
  update: Update,
): Promise<UnknownObject> {
  for (let attempt = 0; ; attempt++) {
    const stored = engine.store.get(placeOf(request));
    if (!stored) throw notFound(request.type, request.name);
    try {
      return await tryUpdate(engine, request, update, stored);
    } catch (error) {
      if (!(error instanceof StaleWriteError)) throw error;
      if (attempt >= maxAttempts) throw conflict(request.type, request.name);
    }
  }
}

async function tryUpdate(
  engine: Engine,
  request: ResourceRequest,
  update: Update,
  stored: StoredObject,
): Promise<UnknownObject> {
  const { type } = request;
  const now = timestamp(engine.clock);
  if (isLarge(stored.json)) request.large = true;
  if (request.large) await turn();
  const old = await engine.conversions.presented(type, stored);
  if (request.large) await turn();
  const current = copyOf(old);
  if (request.large) await turn();
  let wanted = await update.modify(current);
  if (request.large) {
    await turn();
    // A patch may have added to what was there.
    checkShape(wanted);
    await turn();
  }
  checkIdentity(request, wanted, old);
  keepSystemFields(type, wanted, old, update.subresource);
  wanted = completed(type, wanted);
  if (request.large) await turn();
  if (!update.tracked) await track(request, old, wanted, now);
  let next = await engine.admission.mutate(request, "UPDATE", wanted, old);
  if (next !== wanted) keepSystemFields(type, next, old, update.subresource);
  if (request.large) await turn();
  next = completed(type, next);
  preventEscalation(engine.authorizer, request, next, old);
  type.strategy.prepare?.(next, { now, old, subresource: update.subresource });
  // The part of an object that a node or controller writes does not change the desired state.
  const isWish = update.subresource !== "status" && update.subresource !== "binding";
  if (isWish && type.strategy.generation && changesGeneration(type, next, old)) {
    next.metadata.generation = (old.metadata.generation ?? 0) + 1;
  }
  if (request.large) await turn();
  validate(engine, request, next, old);
  if (request.large) await turn();
  if (update.subresource === "" && type.strategy.warnings)
    request.warnings.push(...type.strategy.warnings(next, old));
  next = storable(type, next);
  const undo = engine.addresses.allocate(type, next, old);
  try {
    await engine.admission.validate(request, "UPDATE", next, old);
    if (request.large) await turn();
    if (isUnchanged(next, old)) return old;
    const kept = request.dryRun ? next : await engine.conversions.toStorage(type, next);
    engine.store.expect(stored);
    engine.admission.charge(request, "UPDATE", next, old);
    if (request.dryRun) {
      undo?.();
      return next;
    }
    if (isFinished(kept)) {
      const removed = await engine.store.remove(stored, kept);
      const last = await engine.conversions.seen(type, removed);
      const { resourceVersion = "" } = old.metadata;
      // Watchers hear the version of the removal, the writer the last one that the object had.
      return { ...last, metadata: { ...last.metadata, resourceVersion } };
    }
    const growth = growthOf(request.user, kept, old);
    const written = await engine.store.put(stored, stored, kept, growth);
    return await engine.conversions.seen(type, written);
  } catch (error) {
    undo?.();
    throw withoutRoom(request, request.name, error);
  }
}

/** An object that waits for its deletion is gone when its last finalizer is. */
function isFinished({ metadata, kind, spec }: UnknownObject): boolean {
  if (!metadata.deletionTimestamp || metadata.finalizers?.length) return false;
  if ((metadata.deletionGracePeriodSeconds ?? 0) > 0) return false;
  if (kind === "Namespace") {
    return ((spec as { finalizers?: string[] } | undefined)?.finalizers?.length ?? 0) === 0;
  }
  return true;
}

function checkIdentity(request: ResourceRequest, wanted: UnknownObject, old: UnknownObject): void {
  const { type, name } = request;
  const { metadata } = wanted;
  if (metadata.name !== undefined && metadata.name !== name) {
    throw badRequest(
      `the name of the object (${metadata.name}) does not match the name on the URL (${name})`,
    );
  }
  metadata.name = name;
  const version = metadata.resourceVersion;
  if (version && !/^\d+$/.test(version)) {
    throw plainFailure(`strconv.ParseUint: parsing ${JSON.stringify(version)}: invalid syntax`);
  }
  if (version && version !== "0" && version !== old.metadata.resourceVersion) {
    throw conflict(type, name);
  }
  if (wanted.apiVersion !== groupVersionOf(type) || wanted.kind !== type.kind) {
    throw badRequest(
      `the object is a ${wanted.apiVersion} ${wanted.kind}, but the URL is that of a ${groupVersionOf(type)} ${type.kind}`,
    );
  }
}

const systemFields = [
  "creationTimestamp",
  "deletionTimestamp",
  "deletionGracePeriodSeconds",
  "generation",
  "resourceVersion",
  "namespace",
  "generateName",
] as const;

/** Puts back what a client cannot change, and what this endpoint does not change. */
function keepSystemFields(
  type: ResourceType,
  next: UnknownObject,
  old: UnknownObject,
  subresource: string,
): void {
  next.metadata.uid ||= old.metadata.uid ?? "";
  for (const field of systemFields) {
    if (old.metadata[field] === undefined) delete next.metadata[field];
    else Object.assign(next.metadata, { [field]: old.metadata[field] });
  }
  // A finalizer may go while an object is being deleted, but none may come.
  if (subresource === "status") {
    for (const key of Object.keys({ ...old, ...next })) {
      if (key === "status" || key === "metadata") continue;
      if (old[key] === undefined) delete next[key];
      else next[key] = old[key];
    }
    const { managedFields, annotations } = next.metadata;
    next.metadata = { ...old.metadata };
    if (managedFields) next.metadata.managedFields = managedFields;
    // Built-in kinds have theirs written with the status: a Deployment's revision, say.
    if (!type.custom) {
      if (annotations) next.metadata.annotations = annotations;
      else delete next.metadata.annotations;
    }
  } else if (type.hasStatus && subresource !== "binding") {
    if (old.status === undefined) delete next.status;
    else next.status = old.status;
  }
}

function changesGeneration(type: ResourceType, next: UnknownObject, old: UnknownObject): boolean {
  if (next.metadata.deletionTimestamp !== old.metadata.deletionTimestamp) return true;
  const { generationOf = [] } = type.strategy;
  if (generationOf.some((key) => !deepEqual(next.metadata[key], old.metadata[key]))) return true;
  return [...new Set([...Object.keys(next), ...Object.keys(old)])].some(
    (key) =>
      key !== "metadata" &&
      !(key === "status" && (type.hasStatus || !type.custom)) &&
      !deepEqual(next[key], old[key]),
  );
}

function isUnchanged(next: UnknownObject, old: UnknownObject): boolean {
  const { managedFields: left, ...nextMeta } = next.metadata;
  const { managedFields: right, ...oldMeta } = old.metadata;
  return (
    deepEqual({ ...next, metadata: nextMeta }, { ...old, metadata: oldMeta }) &&
    sameManagedFields(left, right)
  );
}

function validate(
  engine: Engine,
  { type, subresource }: ResourceRequest,
  object: UnknownObject,
  old: UnknownObject | undefined,
): void {
  const errors = new FieldErrors();
  validateMetadata(type, object.metadata, errors, old?.metadata);
  if (type.custom) validateCustomObject(type, object, errors, old, engine.log);
  else type.strategy.validate?.(object, errors, old, subresource);
  errors.throwIfAny(type.kind, type.group, object.metadata.name ?? "");
}

async function track(
  request: ResourceRequest,
  old: UnknownObject | undefined,
  next: UnknownObject,
  now: string,
): Promise<void> {
  const { type, manager, subresource } = request;
  // Updates of an object without any owned field are not tracked; tracking begins with apply.
  if (old && !old.metadata.managedFields?.length && !next.metadata.managedFields?.length) return;
  const isScale = subresource === "scale";
  const before = old && isScale ? asToldByScale(type, old) : old;
  const after = isScale ? asToldByScale(type, next) : next;
  const steps = stepsAfterUpdate(before, after, type.schema, {
    manager,
    apiVersion: groupVersionOf(type),
    subresource: ["status", "scale", "binding", "finalize"].includes(subresource)
      ? subresource
      : undefined,
    now,
  });
  const entries = await inTurns(steps, request.large === true);
  if (entries.length > 0) next.metadata.managedFields = entries;
  else delete next.metadata.managedFields;
}
