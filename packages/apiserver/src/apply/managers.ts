import { type ManagedFieldsEntry, type UnknownObject } from "@spry/kube";
import { type FieldSet, fieldSetFrom, isEmptySet, union } from "./field-set.ts";

/** Who writes: an entry of `metadata.managedFields` is kept per combination of these. */
export interface Writer {
  manager: string;
  apiVersion: string;
  subresource?: string | undefined;
  /** RFC 3339. */
  now: string;
}

/** One entry of `metadata.managedFields`. */
export interface Manager {
  manager: string;
  operation: "Apply" | "Update";
  apiVersion: string;
  subresource: string;
  time: string | undefined;
  set: FieldSet;
}

/** More managers that update than this are summed up under one name. */
const maxUpdaters = 10;
const ancientManager = "ancient-changes";

/** Whether the entry is the writer's for this operation. */
export function isSame(each: Manager, writer: Writer, operation: Manager["operation"]): boolean {
  return (
    each.operation === operation &&
    each.manager === writer.manager &&
    each.apiVersion === writer.apiVersion &&
    each.subresource === (writer.subresource ?? "")
  );
}

/** The start of the writer's entry. */
export function identityOf(writer: Writer, operation: Manager["operation"]) {
  const { manager, apiVersion, subresource = "" } = writer;
  return { manager, operation, apiVersion, subresource };
}

/**
 * The managers a write starts from. A client that sends entries of its own replaces them (that is how
 * kubectl moves an object to server-side apply); one that sends none, or cannot be read, does not.
 */
export function managersOf(
  object: UnknownObject | undefined,
  live: UnknownObject | undefined,
): Manager[] {
  const entries = object?.metadata.managedFields;
  const isReset = entries?.length === 1 && Object.keys(entries[0] ?? {}).length === 0;
  if (isReset) return [];
  const decoded = decodedEntries(entries);
  return decoded.length > 0 ? decoded : decodedEntries(live?.metadata.managedFields);
}

function decodedEntries(entries: ManagedFieldsEntry[] | undefined): Manager[] {
  if (!Array.isArray(entries)) return [];
  return entries.flatMap((entry) =>
    entry.operation === "Apply" || entry.operation === "Update"
      ? [
          {
            manager: entry.manager ?? "",
            operation: entry.operation,
            apiVersion: entry.apiVersion ?? "",
            subresource: entry.subresource ?? "",
            time: entry.time,
            set: fieldSetFrom(entry.fieldsV1),
          },
        ]
      : [],
  );
}

/** The entries in their order in an object; a manager without fields has none. */
export function encoded(managers: Manager[]): ManagedFieldsEntry[] {
  return managers
    .filter(({ set }) => !isEmptySet(set))
    .sort(
      (a, b) =>
        compareText(a.operation, b.operation) ||
        compareText(a.time ?? "", b.time ?? "") ||
        compareText(a.manager, b.manager) ||
        compareText(a.subresource, b.subresource),
    )
    .map(({ manager, operation, apiVersion, subresource, time, set }) => ({
      manager,
      operation,
      apiVersion,
      ...(time !== undefined && { time }),
      fieldsType: "FieldsV1",
      fieldsV1: set,
      ...(subresource && { subresource }),
    }));
}

/** Compares by code units. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** With the oldest that update as one, where they are too many. */
export function capped(managers: Manager[]): Manager[] {
  const updaters = managers
    .filter(({ operation, set }) => operation === "Update" && !isEmptySet(set))
    .sort((a, b) => compareText(a.time ?? "", b.time ?? ""));
  const excess = updaters.length - maxUpdaters;
  if (excess <= 0) return managers;
  const oldest = updaters.slice(0, excess + 1);
  const last = oldest.at(-1);
  if (!last) return managers;
  const set = oldest.reduce((sum, each) => union(sum, each.set), {} as FieldSet);
  const kept = managers.filter((each) => !oldest.includes(each));
  return [...kept, { ...last, manager: ancientManager, subresource: "", set }];
}
