import { deepEqual } from "@spry/kube";
import { fieldSchema, itemSchema, type Schema } from "../schema/schema.ts";
import { atOnce } from "../turns.ts";
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
  return atOnce(compareSteps(before, after, schema));
}

/** The same in steps, between which others may come in; the values must not change meanwhile. */
export function* compareSteps(
  before: unknown,
  after: unknown,
  schema: Schema | undefined,
): Generator<void, Comparison> {
  const result: Comparison = { added: {}, modified: {}, removed: {} };
  yield* compareChildren(before, after, schema, result);
  return result;
}

/** Fields that are looked at in one step. */
const stepLength = 10_000;

function* compareChildren(
  before: unknown,
  after: unknown,
  schema: Schema | undefined,
  into: Comparison,
): Generator<void> {
  if (isGranularMap(before, schema) && isGranularMap(after, schema)) {
    yield* compareFields(before, after, schema, into);
    return;
  }
  const left = childrenOf(before, schema);
  const right = childrenOf(after, schema);
  for (const [element, child] of left)
    if (!right.has(element)) yield* attach(into.removed, element, child);
  for (const [element, child] of right) {
    const previous = left.get(element);
    if (previous) yield* compareChild(element, previous.value, child, into);
    else yield* attach(into.added, element, child);
  }
}

/** Two maps without a list of their children each: nearly all that is compared are maps that hardly differ. */
function* compareFields(
  before: JsonObject,
  after: JsonObject,
  schema: Schema | undefined,
  into: Comparison,
): Generator<void> {
  let count = 0;
  for (const [key, value] of Object.entries(before)) {
    if (value === undefined || has(after, key)) continue;
    if (++count % stepLength === 0) yield;
    if (isScalar(value)) into.removed[`f:${key}`] = leaf;
    else yield* attach(into.removed, `f:${key}`, { value, schema: fieldSchema(schema, key) });
  }
  for (const [key, value] of Object.entries(after)) {
    if (value === undefined) continue;
    if (++count % stepLength === 0) yield;
    if (has(before, key)) {
      if (before[key] === value) continue;
      const child = { value, schema: fieldSchema(schema, key) };
      yield* compareChild(`f:${key}`, before[key], child, into);
    } else if (isScalar(value)) into.added[`f:${key}`] = leaf;
    else yield* attach(into.added, `f:${key}`, { value, schema: fieldSchema(schema, key) });
  }
}

function isScalar(value: unknown): boolean {
  return typeof value !== "object" || value === null;
}

function has(map: JsonObject, key: string): boolean {
  return Object.hasOwn(map, key) && map[key] !== undefined;
}

function* compareChild(
  element: string,
  previous: unknown,
  { value, schema }: Child,
  into: Comparison,
): Generator<void> {
  // A list that was null before has no items yet.
  const before = previous === null && isGranularList(value, schema) ? [] : previous;
  if (deepEqual(before, value)) return;
  if (!isBranch(before, schema) || !isBranch(value, schema)) {
    into.modified[element] = leaf;
    return;
  }
  const below: Comparison = { added: {}, modified: {}, removed: {} };
  yield* compareChildren(before, value, schema, below);
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
      // Items that cannot be distinguished are one field, which has one owner as a whole.
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
function* attach(set: FieldSet, element: string, child: Child): Generator<void> {
  if (isScalar(child.value)) {
    set[element] = leaf;
    return;
  }
  const below = yield* fieldsWithContainers(child);
  const node = nodeFor(child.value, below, true, child.schema);
  if (node) set[element] = node;
}

function* fieldsWithContainers({ value, schema }: Child): Generator<void, FieldSet> {
  const set: FieldSet = {};
  let count = 0;
  for (const [element, child] of childrenOf(value, schema)) {
    if (++count % stepLength === 0) yield;
    if (isScalar(child.value)) set[element] = leaf;
    else yield* attach(set, element, child);
  }
  return set;
}
