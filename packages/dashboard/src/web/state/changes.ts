/** What a user has changed of a Function, and what others have meanwhile. */
import { type Function, type FunctionSpec, labelPrefix } from "@spry/function/browser";
import { applyMergePatch, deepEqual, mergePatchBetween } from "@spry/kube/browser";

/** What a user sets of a Function. */
export interface Desired {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: FunctionSpec;
}

/** Written by programs, not by users. */
const isForeign = (key: string): boolean =>
  key === "kubectl.kubernetes.io/last-applied-configuration" ||
  key === `${labelPrefix}last-modifier`;

export function desiredOf({ metadata, spec }: Pick<Function, "metadata" | "spec">): Desired {
  const { labels = {}, annotations = {} } = metadata;
  const own = Object.entries(annotations).filter(([key]) => !isForeign(key));
  return { metadata: { labels, annotations: Object.fromEntries(own) }, spec };
}

export const isChanged = (base: Desired, edited: Desired): boolean => !deepEqual(base, edited);

/** A field that two users have changed in different ways. */
export interface Clash {
  /** As in `spec.source.inline.source`. */
  path: string;
  mine: unknown;
  theirs: unknown;
}

/**
 * My changes since `base` on top of what it is now. Fields that both have changed are in `clashes`, and have my value in
 * `merged`.
 */
export function mergeChanges(
  base: Desired,
  mine: Desired,
  theirs: Desired,
): { merged: Desired; clashes: Clash[] } {
  const patch = mergePatchBetween(base, mine);
  const merged = applyMergePatch(theirs, patch) as Desired;
  const theirPaths = new Set(leaves(mergePatchBetween(base, theirs)));
  const clashes = leaves(patch)
    .filter((path) =>
      [...theirPaths].some((other) => isWithin(path, other) || isWithin(other, path)),
    )
    .map((path) => ({ path, mine: valueAt(mine, path), theirs: valueAt(theirs, path) }))
    .filter(({ mine, theirs }) => !deepEqual(mine, theirs));
  return { merged, clashes };
}

/** A dot is part of labels' keys: segments are joined by what none contains. */
const separator = "\u0000";
export const shownPath = (path: string): string => path.replaceAll(separator, ".");

function leaves(patch: unknown, path = ""): string[] {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch))
    return path ? [path] : [];
  return Object.entries(patch).flatMap(([key, value]) =>
    leaves(value, path ? `${path}${separator}${key}` : key),
  );
}

const isWithin = (inner: string, outer: string): boolean =>
  inner === outer || inner.startsWith(outer + separator);

function valueAt(object: unknown, path: string): unknown {
  return path
    .split(separator)
    .reduce<unknown>(
      (value, key) =>
        typeof value === "object" && value !== null
          ? (value as Record<string, unknown>)[key]
          : undefined,
      object,
    );
}

/** The same with the other user's value at these paths. */
export function withTheirs(merged: Desired, clashes: readonly Clash[]): Desired {
  const copy = structuredClone(merged);
  for (const { path, theirs } of clashes) setAt(copy, path.split(separator), theirs);
  return copy;
}

function setAt(object: unknown, [key = "", ...rest]: string[], value: unknown): void {
  if (typeof object !== "object" || object === null) return;
  const fields = object as Record<string, unknown>;
  if (rest.length > 0) return setAt((fields[key] ??= {}), rest, value);
  if (value === undefined) delete fields[key];
  else fields[key] = value;
}
