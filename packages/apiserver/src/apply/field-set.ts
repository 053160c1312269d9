import { parseJson } from "../json.ts";

/**
 * A set of fields of an object, the way `metadata.managedFields` writes them ("FieldsV1"): a tree
 * whose edges are path elements: `f:<field>`, `k:<keys of a list item as JSON>`, `v:<value of a set>`.
 * A leaf is a member; an inner node is one when it has the element `.`. Sets share their nodes: never change one.
 */
export interface FieldSet {
  [element: string]: FieldSet;
}

const self = ".";

/** The node of a member with nothing below it: one for all. */
export const leaf: FieldSet = Object.freeze({});

export function isEmptySet(set: FieldSet): boolean {
  if (set === leaf) return true;
  for (const _ in set) return false;
  return true;
}

/** Whether the node itself (not only something below) belongs to the set. */
export function isMember(node: FieldSet | undefined): boolean {
  return node !== undefined && (self in node || isEmptySet(node));
}

function childElements(node: FieldSet): string[] {
  return Object.keys(node).filter((element) => element !== self);
}

/** A node from whether it is a member and what is below; undefined when that is nothing. */
function nodeOf(member: boolean, children: FieldSet): FieldSet | undefined {
  if (isEmptySet(children)) return member ? {} : undefined;
  return member ? { [self]: {}, ...children } : children;
}

/** Whether something is in the result that is in the left set, in the right one, or in both; never what is in neither. */
type Combine = (left: boolean, right: boolean) => boolean;

function combine(left: FieldSet, right: FieldSet, keep: Combine): FieldSet {
  if (isEmptySet(left)) return keep(false, true) ? right : left;
  if (isEmptySet(right)) return keep(true, false) ? left : right;
  // The root has no path, so it is never a member.
  return combineBelow(left, right, keep, false) ?? {};
}

function combineNodes(
  left: FieldSet | undefined,
  right: FieldSet | undefined,
  keep: Combine,
): FieldSet | undefined {
  if (!left || !right) {
    const isKept = keep(left !== undefined, right !== undefined);
    return isKept ? (left ?? right) : undefined;
  }
  if (isEmptySet(left) && isEmptySet(right)) return keep(true, true) ? left : undefined;
  const member = keep(isMember(left), isMember(right));
  return combineBelow(left, right, keep, member);
}

function combineBelow(
  left: FieldSet,
  right: FieldSet,
  keep: Combine,
  member: boolean,
): FieldSet | undefined {
  const result: FieldSet = member ? { [self]: {} } : {};
  let isLeaf = true;
  const add = (element: string) => {
    const child = combineNodes(left[element], right[element], keep);
    if (!child) return;
    result[element] = child;
    isLeaf = false;
  };
  for (const element in left) if (element !== self) add(element);
  for (const element in right) if (element !== self && !(element in left)) add(element);
  if (!isLeaf) return result;
  return member ? {} : undefined;
}

export function union(left: FieldSet, right: FieldSet): FieldSet {
  return combine(left, right, (a, b) => a || b);
}

export function intersection(left: FieldSet, right: FieldSet): FieldSet {
  return combine(left, right, (a, b) => a && b);
}

export function difference(left: FieldSet, right: FieldSet): FieldSet {
  return combine(left, right, (a, b) => a && !b);
}

/** Without the members of `right` and everything below them. */
export function withoutSubtrees(left: FieldSet, right: FieldSet): FieldSet {
  const prune = (node: FieldSet, removed: FieldSet, root: boolean): FieldSet | undefined => {
    const children: FieldSet = {};
    for (const element of childElements(node)) {
      const below = removed[element];
      const child = node[element] ?? {};
      if (isMember(below)) continue;
      const kept = below ? prune(child, below, false) : child;
      if (kept) children[element] = kept;
    }
    return nodeOf(!root && isMember(node), children);
  };
  return prune(left, right, true) ?? {};
}

export function equalSets(left: FieldSet, right: FieldSet): boolean {
  const elements = childElements(left);
  if (elements.length !== childElements(right).length) return false;
  return elements.every((element) => {
    const a = left[element] ?? {};
    const b = Object.hasOwn(right, element) ? right[element] : undefined;
    return b !== undefined && isMember(a) === isMember(b) && equalSets(a, b);
  });
}

/** Paths of all members, in the words of a conflict: `.spec.containers[name="a"].image`. */
export function pathsOf(set: FieldSet, prefix = ""): string[] {
  const elements = childElements(set).sort();
  const path = (element: string) => prefix + elementText(element);
  const members = elements.filter((element) => isMember(set[element]));
  // In Kubernetes' order: all of a level before what is below.
  return [
    ...members.map(path),
    ...elements.flatMap((each) => pathsOf(set[each] ?? {}, path(each))),
  ];
}

export function elementText(element: string): string {
  const rest = element.slice(2);
  if (element.startsWith("f:")) return `.${rest}`;
  if (element.startsWith("v:")) return `[=${rest}]`;
  if (element.startsWith("i:")) return `[${rest}]`;
  const keys = Object.entries(parseJson(rest) as Record<string, unknown>);
  return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(",")}]`;
}

/** Reads what a client sent as `fieldsV1`; anything that is not a set of fields counts as empty. */
export function fieldSetFrom(value: unknown): FieldSet {
  if (!isFieldSet(value, 0)) return {};
  // The root has no path: it is never a member.
  const { [self]: _, ...set } = value;
  return isNormal(set) ? set : normal(set);
}

function isElement(text: string): boolean {
  return text === self || text.startsWith("f:") || /^[vi]:|^k:\{/.test(text);
}

function isFieldSet(value: unknown, depth: number): value is FieldSet {
  if (typeof value !== "object" || value === null || Array.isArray(value) || depth > 256)
    return false;
  for (const element in value) {
    if (!isElement(element) || !isFieldSet((value as FieldSet)[element], depth + 1)) return false;
  }
  return true;
}

/** As servers write it: nothing below a `.`, and no `.` where there is nothing else. */
function isNormal(set: FieldSet): boolean {
  let elements = 0;
  for (const element in set) {
    elements++;
    const child = set[element] ?? {};
    if (element === self ? !isEmptySet(child) : !isNormal(child)) return false;
  }
  return elements !== 1 || !(self in set);
}

function normal(set: FieldSet): FieldSet {
  const result: FieldSet = {};
  const elements = childElements(set);
  if (self in set && elements.length > 0) result[self] = {};
  for (const element of elements) result[element] = normal(set[element] ?? {});
  return result;
}
