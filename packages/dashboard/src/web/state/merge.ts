/** Changes of two users become one: by field, by the key of a list's entries, and by line of a text. */
import { deepEqual } from "@spry/kube/browser";
import { diffArrays } from "diff";

/** What two users have changed in different ways. */
export interface Clash {
  /** The fields on the way; an entry of a list is `[its key]`. */
  path: readonly string[];
  mine: unknown;
  theirs: unknown;
}

export interface Merged<T> {
  /** With my value where they clash. */
  merged: T;
  clashes: Clash[];
}

type Fields = Record<string, unknown>;
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** By which field the entries of a list are known, where they have one. */
const keys = ["name", "secretName", "revision"];
/** Of two texts whose lines differ more, both are shown as wholes. */
const maxLineEdits = 5_000;

/** My changes since `base` together with theirs. `taken` has the paths, joined by `\u0000`, at which theirs is chosen. */
export function mergeThreeWays<T>(
  base: T,
  mine: T,
  theirs: T,
  taken: ReadonlySet<string> = new Set(),
): Merged<T> {
  const clashes: Clash[] = [];
  const choose = (path: readonly string[], mine: unknown, theirs: unknown): unknown => {
    clashes.push({ path, mine, theirs });
    return taken.has(pathKey(path)) ? theirs : mine;
  };
  const merge = (base: unknown, mine: unknown, theirs: unknown, path: string[]): unknown => {
    if (deepEqual(mine, theirs) || deepEqual(base, theirs)) return mine;
    if (deepEqual(base, mine)) return theirs;
    if (isFields(mine) && isFields(theirs))
      return mergeFields(isFields(base) ? base : {}, mine, theirs, path);
    if (Array.isArray(mine) && Array.isArray(theirs)) {
      const before: unknown[] = Array.isArray(base) ? base : [];
      const key = keyOf([before, mine, theirs]);
      if (key !== undefined) return mergeLists(key, before, mine, theirs, path);
    }
    if (typeof base === "string" && typeof mine === "string" && typeof theirs === "string") {
      const lines = mergeLines(base, mine, theirs);
      if (lines !== undefined) return lines;
    }
    return choose(path, mine, theirs);
  };
  const mergeFields = (base: Fields, mine: Fields, theirs: Fields, path: string[]): Fields => {
    const found: [string, unknown][] = [];
    for (const name of new Set([...Object.keys(theirs), ...Object.keys(mine)])) {
      const own = (fields: Fields) => (Object.hasOwn(fields, name) ? fields[name] : undefined);
      const value = merge(own(base), own(mine), own(theirs), [...path, name]);
      if (value !== undefined) found.push([name, value]);
    }
    return Object.fromEntries(found);
  };
  const mergeLists = (
    key: string,
    base: unknown[],
    mine: unknown[],
    theirs: unknown[],
    path: string[],
  ): unknown[] => {
    const of = (list: unknown[], name: unknown) =>
      list.find((each) => isFields(each) && each[key] === name);
    const nameOf = (each: unknown) => (each as Fields)[key];
    // Their order, and what I have added behind the entry that it follows with me; where only I have moved entries, mine.
    const order = theirs.map(nameOf);
    for (const [at, each] of mine.entries()) {
      if (order.includes(nameOf(each))) continue;
      const before = at === 0 ? -1 : order.indexOf(nameOf(mine[at - 1]));
      order.splice(before < 0 ? order.length : before + 1, 0, nameOf(each));
    }
    const isMoved = deepEqual(base.map(nameOf), theirs.map(nameOf));
    const names = isMoved ? [...mine.map(nameOf), ...order.filter((n) => !of(mine, n))] : order;
    return names.flatMap((name) => {
      const value = merge(of(base, name), of(mine, name), of(theirs, name), [
        ...path,
        `[${String(name)}]`,
      ]);
      return value === undefined ? [] : [value];
    });
  };
  return { merged: merge(base, mine, theirs, []) as T, clashes };
}

export const pathKey = (path: readonly string[]): string => path.join("\u0000");
/** `spec.env[A].value`. */
export const shownPath = (path: readonly string[]): string => path.join(".").replaceAll(".[", "[");

/** A field that each entry of all lists has, and none of them twice. */
const keyOf = (lists: unknown[][]): string | undefined =>
  keys.find((key) =>
    lists.every(
      (list) =>
        list.every((each) => isFields(each) && isName(each[key])) &&
        new Set(list.map((each) => (each as Fields)[key])).size === list.length,
    ),
  );
const isName = (value: unknown): boolean => typeof value === "string" || typeof value === "number";

interface Edit {
  /** Lines of the base that it replaces. */
  from: number;
  to: number;
  lines: string[];
}

/** Undefined where both have changed the same lines, or lines next to each other. */
function mergeLines(base: string, mine: string, theirs: string): string | undefined {
  const lines = base.split("\n");
  const [my, their] = [editsOf(lines, mine.split("\n")), editsOf(lines, theirs.split("\n"))];
  if (!my || !their) return undefined;
  const all = my.filter((each) => !their.some((other) => deepEqual(each, other)));
  if (all.some((one) => their.some((other) => one.from <= other.to && other.from <= one.to)))
    return undefined;
  for (const { from, to, lines: put } of [...all, ...their].toSorted((a, b) => b.from - a.from))
    lines.splice(from, to - from, ...put);
  return lines.join("\n");
}

function editsOf(before: string[], after: string[]): Edit[] | undefined {
  const parts = diffArrays(before, after, { maxEditLength: maxLineEdits });
  if (!parts) return undefined;
  const edits: Edit[] = [];
  let at = 0;
  let open: Edit | undefined;
  for (const { value, added, removed } of parts) {
    if (!added && !removed) {
      open = undefined;
      at += value.length;
      continue;
    }
    if (!open) edits.push((open = { from: at, to: at, lines: [] }));
    if (added) open.lines.push(...value);
    else open.to = at += value.length;
  }
  return edits;
}
