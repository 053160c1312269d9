import { deepEqual } from "@spry/kube";
import { fieldSchema, itemSchema, type Schema } from "../schema/schema.ts";
import { type FieldSet, isEmptySet, leaf } from "./field-set.ts";
import {
  elementOf,
  isGranularList,
  isGranularMap,
  type JsonObject,
  nodeFor,
} from "./typed-value.ts";

export interface Comparison {
  added: FieldSet;
  modified: FieldSet;
  removed: FieldSet;
}

/** Which fields differ between two versions of a value. */
export function compare(before: unknown, after: unknown, schema: Schema | undefined): Comparison {
  const result: Comparison = { added: {}, modified: {}, removed: {} };
  compareChildren(before, after, schema, result);
  return result;
}

function compareChildren(
  before: unknown,
  after: unknown,
  schema: Schema | undefined,
  into: Comparison,
): void {
  if (isGranularMap(before, schema) && isGranularMap(after, schema)) {
    compareFields(before, after, schema, into);
    return;
  }
  const left = childrenOf(before, schema);
  const right = childrenOf(after, schema);
  for (const [element, child] of left)
    if (!right.has(element)) attach(into.removed, element, child);
  for (const [element, child] of right) {
    const previous = left.get(element);
    if (previous) compareChild(element, previous.value, child, into);
    else attach(into.added, element, child);
  }
}

/** Two maps without a list of their children each: nearly all that is compared are maps that hardly differ. */
function compareFields(
  before: JsonObject,
  after: JsonObject,
  schema: Schema | undefined,
  into: Comparison,
): void {
  for (const [key, value] of Object.entries(before)) {
    if (value !== undefined && !has(after, key))
      attach(into.removed, `f:${key}`, { value, schema: fieldSchema(schema, key) });
  }
  for (const [key, value] of Object.entries(after)) {
    if (value === undefined) continue;
    const child = { value, schema: fieldSchema(schema, key) };
    if (has(before, key)) compareChild(`f:${key}`, before[key], child, into);
    else attach(into.added, `f:${key}`, child);
  }
}

function has(map: JsonObject, key: string): boolean {
  return Object.hasOwn(map, key) && map[key] !== undefined;
}

function compareChild(
  element: string,
  previous: unknown,
  { value, schema }: Child,
  into: Comparison,
): void {
  // A list that is told as null has no items yet.
  const before = previous === null && isGranularList(value, schema) ? [] : previous;
  if (deepEqual(before, value)) return;
  if (!isBranch(before, schema) || !isBranch(value, schema)) {
    into.modified[element] = leaf;
    return;
  }
  const below: Comparison = { added: {}, modified: {}, removed: {} };
  compareChildren(before, value, schema, below);
  for (const part of ["added", "modified", "removed"] as const) {
    if (!isEmptySet(below[part])) into[part][element] = below[part];
  }
}

interface Child {
  value: unknown;
  schema: Schema | undefined;
}

function isBranch(value: unknown, schema: Schema | undefined): boolean {
  return isGranularMap(value, schema) || isGranularList(value, schema);
}

function childrenOf(value: unknown, schema: Schema | undefined): Map<string, Child> {
  const children = new Map<string, Child>();
  if (isGranularMap(value, schema)) {
    for (const [key, child] of Object.entries(value)) {
      if (child === undefined) continue;
      children.set(`f:${key}`, { value: child, schema: fieldSchema(schema, key) });
    }
  } else if (isGranularList(value, schema)) {
    const item = itemSchema(schema);
    for (const each of value) {
      const element = elementOf(each, schema);
      const known = children.get(element);
      // Items that cannot be told apart are one thing, of which nobody owns a part.
      const isOne = known === undefined;
      const all =
        known?.schema === undefined && known
          ? [...(known.value as unknown[]), each]
          : [known?.value, each];
      children.set(element, {
        value: isOne ? each : all,
        schema: isOne ? item : undefined,
      });
    }
  }
  return children;
}

/** What comes or goes as a whole counts itself, not only what it holds. */
function attach(set: FieldSet, element: string, child: Child): void {
  if (typeof child.value !== "object" || child.value === null) {
    set[element] = leaf;
    return;
  }
  const node = nodeFor(child.value, fieldsWithContainers(child), true, child.schema);
  if (node) set[element] = node;
}

function fieldsWithContainers({ value, schema }: Child): FieldSet {
  const set: FieldSet = {};
  for (const [element, child] of childrenOf(value, schema)) attach(set, element, child);
  return set;
}
