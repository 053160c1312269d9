import { deepEqual } from "@spry/kube";
import { badRequest, plainFailure } from "../errors.ts";
import { goText } from "./go-conversion.ts";
import { fieldSchema, isRawExtension, itemSchema, type Schema } from "../schema/schema.ts";

type JsonObject = Record<string, unknown>;

const directive = "$patch";
const retainKeys = "$retainKeys";
const elementOrder = "$setElementOrder/";
const deleteFromList = "$deleteFromPrimitiveList/";

/**
 * Applies a strategic merge patch: a merge patch in which lists with a merge key merge by that key,
 * and `$patch`, `$retainKeys`, `$setElementOrder/<list>`, `$deleteFromPrimitiveList/<list>` steer
 * (sig-api-machinery/strategic-merge-patch.md). Arguments are not changed.
 */
export function applyStrategicMergePatch(
  original: JsonObject,
  patch: JsonObject,
  schema: Schema | undefined,
): JsonObject {
  const steer = patch[directive];
  if (steer === "replace") return without(patch, directive);
  if (steer === "delete") return {};
  if (steer !== undefined && steer !== "merge") {
    throw plainFailure(`unknown patch type: ${goText(steer)} in map: ${goText(patch)}`);
  }
  const result: JsonObject = retained(original, patch);
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith("$")) continue;
    if (value === null) delete result[key];
    else if (isRawExtension(schema) && isSameContainer(result[key], value))
      throw plainFailure(
        `unable to find api field in struct RawExtension for the json field ${JSON.stringify(key)}`,
      );
    else
      result[key] = mergeValue(result[key], value, fieldSchema(schema, key), orderOf(patch, key));
  }
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith(deleteFromList))
      removeValues(result, key.slice(deleteFromList.length), value);
    if (key.startsWith(elementOrder)) {
      const list = key.slice(elementOrder.length);
      if (!(list in patch)) reorder(result, list, orderOf(patch, list), fieldSchema(schema, list));
    }
  }
  return result;
}

/** Two objects, or two lists: what cannot be merged without knowing its structure. */
function isSameContainer(current: unknown, value: unknown): boolean {
  return (isObject(current) && isObject(value)) || (Array.isArray(current) && Array.isArray(value));
}

function mergeValue(
  current: unknown,
  value: unknown,
  schema: Schema | undefined,
  order: unknown[] | undefined,
): unknown {
  if (isObject(value)) {
    const strategy = schema?.["x-kubernetes-patch-strategy"] ?? "";
    const replaces = strategy.split(",").includes("replace") || !isObject(current);
    return applyStrategicMergePatch(replaces ? {} : current, value, schema);
  }
  if (!Array.isArray(value)) return value;
  const existing = Array.isArray(current) ? current : [];
  if (!mergesList(schema)) return value.filter((item) => !isDirectiveItem(item)).map(cleaned);
  const key = schema?.["x-kubernetes-patch-merge-key"];
  const merged = key
    ? mergeItems(existing, value, key, itemSchema(schema))
    : [...new Set([...existing, ...value])];
  return ordered(merged, existing, order ?? value.filter((item) => !isSteered(item)), key);
}

function mergesList(schema: Schema | undefined): boolean {
  return (schema?.["x-kubernetes-patch-strategy"] ?? "").split(",").includes("merge");
}

/** Merges list items that stand for the same thing; new ones go to the end. */
function mergeItems(
  existing: unknown[],
  patch: unknown[],
  key: string,
  schema: Schema | undefined,
): unknown[] {
  const replace = patch.some((item) => isObject(item) && item[directive] === "replace");
  let result = replace ? [] : [...existing];
  for (const item of patch) {
    if (!isObject(item)) throw badRequest("a list with a merge key must have objects as items");
    if (item[directive] === "replace" && Object.keys(item).length === 1) continue;
    const id = item[key];
    if (id === undefined) {
      throw plainFailure(`map: ${goText(item)} does not contain declared merge key: ${key}`);
    }
    if (item[directive] === "delete") {
      result = result.filter((each) => !sameItem(each, key, id));
      continue;
    }
    const at = result.findIndex((each) => sameItem(each, key, id));
    if (at < 0) result.push(applyStrategicMergePatch({}, item, schema));
    else result[at] = applyStrategicMergePatch(result[at] as JsonObject, item, schema);
  }
  return result;
}

function sameItem(item: unknown, key: string, id: unknown): boolean {
  return isObject(item) && item[key] === id;
}

function orderOf(patch: JsonObject, list: string): unknown[] | undefined {
  const order = patch[elementOrder + list];
  return Array.isArray(order) ? order : undefined;
}

function reorder(
  result: JsonObject,
  list: string,
  order: unknown[] | undefined,
  schema: Schema | undefined,
): void {
  const items = result[list];
  if (!order || !Array.isArray(items)) return;
  result[list] = ordered(items, items, order, schema?.["x-kubernetes-patch-merge-key"]);
}

/** The items named in `order` in that order; the others where they stood relative to them. */
function ordered(
  items: unknown[],
  before: unknown[],
  order: unknown[],
  key: string | undefined,
): unknown[] {
  const idOf = (item: unknown) => (key && isObject(item) ? item[key] : item);
  const rank = new Map(order.map((each, index) => [idOf(each), index]));
  const position = new Map(before.map((each, index) => [idOf(each), index]));
  const named = items
    .filter((item) => rank.has(idOf(item)))
    .sort((a, b) => (rank.get(idOf(a)) ?? 0) - (rank.get(idOf(b)) ?? 0));
  const others = items.filter((item) => !rank.has(idOf(item)));
  const result: unknown[] = [];
  while (named.length > 0 && others.length > 0) {
    const left = position.get(idOf(named[0])) ?? Number.POSITIVE_INFINITY;
    const right = position.get(idOf(others[0])) ?? Number.POSITIVE_INFINITY;
    // What the patch names comes first, unless the order that there was says otherwise.
    result.push(right < left && Number.isFinite(left) ? others.shift() : named.shift());
  }
  return [...result, ...named, ...others];
}

function retained(original: JsonObject, patch: JsonObject): JsonObject {
  const keep = patch[retainKeys];
  if (!Array.isArray(keep)) return { ...original };
  return Object.fromEntries(Object.entries(original).filter(([key]) => keep.includes(key)));
}

function removeValues(result: JsonObject, list: string, values: unknown): void {
  const items = result[list];
  if (!Array.isArray(items) || !Array.isArray(values)) return;
  result[list] = items.filter((item) => !values.some((value) => deepEqual(item, value)));
}

/** A value that is taken over as a whole, without directives and nulls. */
function cleaned(value: unknown): unknown {
  return isObject(value) ? applyStrategicMergePatch({}, value, undefined) : value;
}

function isSteered(item: unknown): boolean {
  return isObject(item) && directive in item;
}

function isDirectiveItem(item: unknown): boolean {
  return isObject(item) && directive in item && Object.keys(item).length === 1;
}

function without(object: JsonObject, key: string): JsonObject {
  const { [key]: _, ...rest } = object;
  return rest;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
