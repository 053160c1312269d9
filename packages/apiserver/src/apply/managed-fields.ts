import { copyOf } from "../json-copy.ts";
import { deepEqual, type ManagedFieldsEntry, StatusError, type UnknownObject } from "@spry/kube";
import { plainFailure } from "../errors.ts";
import { atOnce } from "../turns.ts";
import { emptyForm } from "../schema/go-form.ts";
import { type Schema } from "../schema/schema.ts";
import { compare, compareSteps } from "./comparison.ts";
import {
  difference,
  equalSets,
  type FieldSet,
  intersection,
  isEmptySet,
  pathsOf,
  union,
  withoutSubtrees,
} from "./field-set.ts";
import { fieldsLastApplied, kubectlManager, renewLastApplied } from "./last-applied.ts";
import {
  capped,
  compareText,
  encoded,
  identityOf,
  isSame,
  type Manager,
  managersOf,
  type Writer,
} from "./managers.ts";
import { DuplicateItemError, fieldsOf, merge, removeFields } from "./typed-value.ts";

/** Fields that belong to the server or to the object's identity, and so to no manager. */
const unmanaged: FieldSet = {
  "f:apiVersion": {},
  "f:kind": {},
  "f:metadata": {
    ".": {},
    "f:name": {},
    "f:namespace": {},
    "f:creationTimestamp": {},
    "f:selfLink": {},
    "f:uid": {},
    "f:clusterName": {},
    "f:generation": {},
    "f:managedFields": {},
    "f:resourceVersion": {},
  },
};

/**
 * The managed fields after an ordinary write: what changed now belongs to the writer alone. `live` is undefined for a
 * creation.
 */
export function managedFieldsAfterUpdate(
  live: UnknownObject | undefined,
  next: UnknownObject,
  schema: Schema,
  writer: Writer,
): ManagedFieldsEntry[] {
  return atOnce(stepsAfterUpdate(live, next, schema, writer));
}

/** The same in steps, between which others may come in; the objects must not change meanwhile. */
export function* stepsAfterUpdate(
  live: UnknownObject | undefined,
  next: UnknownObject,
  schema: Schema,
  writer: Writer,
): Generator<void, ManagedFieldsEntry[]> {
  const managers = managersOf(next, live);
  yield;
  const { added, modified, removed } = yield* compareSteps(live ?? blankOf(schema), next, schema);
  yield;
  const changed = managedPart(union(added, modified));
  const gone = managedPart(removed);
  yield;
  const lost = union(changed, gone);
  const result: Manager[] = [];
  let mine: Manager | undefined;
  for (const each of managers) {
    if (isSame(each, writer, "Update")) mine = each;
    else result.push({ ...each, set: difference(each.set, lost) });
    yield;
  }
  const left = difference(mine?.set ?? {}, gone);
  yield;
  const set = union(left, changed);
  yield;
  const time = mine && equalSets(mine.set, set) ? mine.time : writer.now;
  result.push({ ...identityOf(writer, "Update"), time, set });
  return encoded(capped(result));
}

/** What a built-in kind is before anything is set; kinds of a definition begin with nothing. */
function blankOf(schema: Schema): UnknownObject {
  if (!schema["x-kubernetes-group-version-kind"]) return { metadata: {} };
  return emptyForm(schema) as unknown as UnknownObject;
}

export interface AppliedObject {
  object: UnknownObject;
  managedFields: ManagedFieldsEntry[];
}

/**
 * Server-side apply: `applied` laid over `live`, without what its manager applied before and no longer
 * does. Throws a `StatusError` 409 naming every field whose value another manager owns, unless `force`,
 * which takes them over.
 */
export function applyObject(
  live: UnknownObject | undefined,
  applied: UnknownObject,
  schema: Schema,
  writer: Writer,
  options: ApplyOptions,
): AppliedObject {
  return atOnce(applySteps(live, applied, schema, writer, options));
}

export interface ApplyOptions {
  force: boolean;
  ignored?: FieldSet;
}

/** The same in steps, between which others may come in; the objects must not change meanwhile. */
export function* applySteps(
  live: UnknownObject | undefined,
  applied: UnknownObject,
  schema: Schema,
  writer: Writer,
  options: ApplyOptions,
): Generator<void, AppliedObject> {
  const managers = managersBefore(live, schema, writer);
  yield;
  const mine = managers.find((each) => isSame(each, writer, "Apply"));
  const others = managers.filter((each) => each !== mine);
  let set = managedPart(fieldsOfApplied(applied, schema));
  if (options.ignored) set = withoutSubtrees(set, options.ignored);
  const base = live ?? { metadata: {} };
  yield;
  const merged = merge(base, applied, schema);
  yield;
  const owned = others.reduce((sum, each) => union(sum, each.set), set);
  const dropped = difference(mine?.set ?? {}, owned);
  yield;
  const kept = removeFields(merged, dropped, owned, schema);
  yield;
  const object = copyOf(kept) as UnknownObject;
  yield;

  const { added, modified, removed } = yield* compareSteps(base, object, schema);
  yield;
  const changed = managedPart(union(added, modified));
  yield;
  const isKubectl = writer.manager === kubectlManager;
  const own = live && isKubectl ? fieldsLastApplied(live, schema, writer.apiVersion) : {};
  const conflicts = others
    .map((manager) => ({
      manager,
      fields: difference(intersection(manager.set, changed), own),
    }))
    .filter(({ fields }) => !isEmptySet(fields));
  if (conflicts.length > 0 && !options.force) throw applyConflict(conflicts);
  if (isKubectl) renewLastApplied(object, applied);
  yield;
  const lost = union(changed, managedPart(removed));
  const remaining = others.map((each) => ({ ...each, set: difference(each.set, lost) }));
  yield;
  // A manager that changes nothing keeps its time; a new one gets none, as in Kubernetes.
  const time = live && deepEqual(base, object) ? mine?.time : writer.now;
  const entry: Manager = { ...identityOf(writer, "Apply"), time, set };
  return { object, managedFields: encoded([...remaining, entry]) };
}

/** Fields of an object without an owner belong to this name from the first apply on. */
const firstManager = "before-first-apply";

function managersBefore(
  live: UnknownObject | undefined,
  schema: Schema,
  writer: Writer,
): Manager[] {
  const managers = managersOf(live, undefined);
  if (!live || managers.length > 0) return managers;
  const { added, modified } = compare(blankOf(schema), live, schema);
  const set = managedPart(union(added, modified));
  const { apiVersion, now } = writer;
  const first = {
    manager: firstManager,
    operation: "Update" as const,
    apiVersion,
    subresource: "",
  };
  return [{ ...first, time: now, set }];
}

function fieldsOfApplied(applied: UnknownObject, schema: Schema): FieldSet {
  try {
    return fieldsOf(applied, schema, "");
  } catch (cause) {
    if (!(cause instanceof DuplicateItemError)) throw cause;
    throw untypable(applied, cause.message);
  }
}

/** An applied object that does not fit its schema; a server's error in Kubernetes too. */
export function untypable(applied: UnknownObject, problem: string): StatusError {
  return plainFailure(`failed to create typed patch object (${nameOf(applied)}): ${problem}`);
}

/** One whose values have the right kinds, but do not fit into the fields. */
export function inconvertible(applied: UnknownObject, problem: string): StatusError {
  const { apiVersion, kind } = applied;
  const cause = `unable to convert unstructured object to ${apiVersion}, Kind=${kind}: ${problem}`;
  return plainFailure(
    `failed to convert new object (${nameOf(applied)}) to proper version: ${cause}`,
  );
}

function nameOf({ apiVersion = "", kind, metadata }: UnknownObject): string {
  // Neither has been checked: only strings are shown.
  const [namespace, name] = [metadata.namespace, metadata.name].map((each) =>
    typeof each === "string" ? each : "",
  );
  const groupVersion = apiVersion.includes("/") ? apiVersion : `/${apiVersion}`;
  return `${namespace}/${name}; ${groupVersion}, Kind=${kind}`;
}

/** Without the times, which alone make no change of an object. */
export function sameManagedFields(
  left: ManagedFieldsEntry[] | undefined,
  right: ManagedFieldsEntry[] | undefined,
): boolean {
  const timeless = (entries: ManagedFieldsEntry[] | undefined) =>
    (entries ?? []).map((entry) => ({ ...entry, time: undefined }));
  return deepEqual(timeless(left), timeless(right));
}

function managedPart(set: FieldSet): FieldSet {
  return difference(set, unmanaged);
}

function applyConflict(conflicts: { manager: Manager; fields: FieldSet }[]): StatusError {
  const all = conflicts
    .map(({ manager, fields }) => ({ name: managerText(manager), paths: pathsOf(fields) }))
    .sort((a, b) => compareText(a.name, b.name));
  const causes = all.flatMap(({ name, paths }) =>
    paths.map((field) => ({
      reason: "FieldManagerConflict",
      message: `conflict with ${name}`,
      field,
    })),
  );
  const summary =
    causes.length === 1
      ? `1 conflict: ${causes[0]?.message}: ${causes[0]?.field}`
      : `${causes.length} conflicts: ${all
          .map(({ name, paths }) =>
            [`conflicts with ${name}:`, ...paths.map((path) => `- ${path}`)].join("\n"),
          )
          .join("\n")}`;
  return new StatusError({
    code: 409,
    message: `Apply failed with ${summary}`,
    details: { causes },
  });
}

function managerText({ manager, operation, subresource, apiVersion }: Manager): string {
  const name = JSON.stringify(manager) + (subresource ? ` with subresource "${subresource}"` : "");
  return operation === "Update" ? `${name} using ${apiVersion}` : name;
}
