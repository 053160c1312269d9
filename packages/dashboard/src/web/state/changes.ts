/** What a user has changed in a Function, and what others have changed meanwhile. */
import { type Function, type FunctionSpec, labelPrefix } from "@spry/function/browser";
import { specShape } from "../api/object-shapes.ts";
import { applyMergePatch, deepEqual, mergePatchBetween } from "@spry/kube/browser";

/** The part of a Function that users set. */
export interface Desired {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: FunctionSpec;
}

/** Of what is stored of it. */
export const desiredShape = {
  "metadata!": { "labels!": { "*": "text" }, "annotations!": { "*": "text" } },
  "spec!": specShape,
} as const;

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
 * Applies my changes since `base` to the present state. Fields that both users have changed are in `clashes`, and have my
 * value in `merged`.
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

/** Label keys contain dots: segments are joined by a character that none of them contains. */
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

/** `merged` with the other user's values at these paths. */
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
