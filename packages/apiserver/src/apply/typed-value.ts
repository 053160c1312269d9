import { badRequest } from "../errors.ts";
import {
  fieldSchema,
  fullNameOf,
  isNamedField,
  isRawExtension,
  itemSchema,
  type Schema,
} from "../schema/schema.ts";
import { elementText, type FieldSet, isEmptySet, isMember, leaf } from "./field-set.ts";

/**
 * What server-side apply does with values whose schema says which parts are one (structured-merge-diff):
 * maps are granular unless atomic, lists are atomic unless they are sets or maps by key. Without a
 * schema, maps are granular and lists atomic.
 */
export type JsonObject = Record<string, unknown>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function isGranularMap(value: unknown, schema: Schema | undefined): value is JsonObject {
  const isAtomic = schema?.["x-kubernetes-map-type"] === "atomic" || isRawExtension(schema);
  return isObject(value) && !isAtomic;
}

export function isGranularList(value: unknown, schema: Schema | undefined): value is unknown[] {
  const type = schema?.["x-kubernetes-list-type"];
  return Array.isArray(value) && (type === "map" || type === "set");
}

/** The path element of a list item: its keys, or the value of a set's item. */
export function elementOf(item: unknown, list: Schema | undefined): string {
  if (list?.["x-kubernetes-list-type"] === "set") return `v:${JSON.stringify(item)}`;
  if (!isObject(item)) throw badRequest("an item of a list of type map must be an object");
  const keys: JsonObject = {};
  for (const key of [...(list?.["x-kubernetes-list-map-keys"] ?? [])].sort()) {
    const value = item[key] ?? keyDefault(itemSchema(list), key);
    if (value !== undefined) keys[key] = value;
  }
  return `k:${JSON.stringify(keys)}`;
}

/** What a key that is left out stands for: in built-in kinds, at least, what Go has for nothing. */
function keyDefault(items: Schema | undefined, key: string): unknown {
  const field = fieldSchema(items, key);
  if (field?.default !== undefined || !items || fullNameOf(items) === undefined)
    return field?.default;
  if (field?.type === "string") return "";
  return field?.type === "integer" ? 0 : undefined;
}

/** An applied list names an item twice. */
export class DuplicateItemError extends Error {
  override readonly name = "DuplicateItemError";
}

/** Items by path element, in order. An applied list must not name an item twice. */
export function itemsByElement(
  list: unknown[],
  schema: Schema | undefined,
  path?: string,
): Map<string, unknown> {
  const items = new Map<string, unknown>();
  for (const item of list) {
    const element = elementOf(item, schema);
    if (path !== undefined && items.has(element)) {
      throw new DuplicateItemError(
        `${path}: duplicate entries for key ${elementText(element).replace("[=", "[")}`,
      );
    }
    if (!items.has(element)) items.set(element, item);
  }
  return items;
}

/** Every field that the value sets. `path` is given for applied values, whose lists are checked. */
export function fieldsOf(value: unknown, schema: Schema | undefined, path?: string): FieldSet {
  const set: FieldSet = {};
  if (isGranularMap(value, schema)) {
    for (const [key, child] of Object.entries(value)) {
      if (child === undefined) continue;
      const below = fieldsOf(
        child,
        fieldSchema(schema, key),
        path === undefined ? path : `${path}.${key}`,
      );
      const owned = !isNamedField(schema, key) || child === null;
      const node = nodeFor(child, below, owned, fieldSchema(schema, key));
      if (node) set[`f:${key}`] = node;
    }
  } else if (isGranularList(value, schema)) {
    for (const [element, item] of itemsByElement(value, schema, path)) {
      const below = fieldsOf(
        item,
        itemSchema(schema),
        path === undefined ? path : path + elementText(element),
      );
      set[element] = isEmptySet(below) ? {} : { ".": {}, ...below };
    }
  }
  return set;
}

/** The node of a map's entry. An empty granular list says nothing; an empty map is itself a field. */
export function nodeFor(
  child: unknown,
  below: FieldSet,
  owned: boolean,
  schema: Schema | undefined,
): FieldSet | undefined {
  if (!isEmptySet(below)) return owned ? { ".": {}, ...below } : below;
  if (isGranularList(child, schema) && !owned) return undefined;
  return leaf;
}

/** The live value with the applied one laid over it. Neither is changed. */
export function merge(live: unknown, applied: unknown, schema: Schema | undefined): unknown {
  if (isGranularMap(live, schema) && isGranularMap(applied, schema)) {
    const result: JsonObject = { ...live };
    for (const [key, value] of Object.entries(applied)) {
      result[key] = key in live ? merge(live[key], value, fieldSchema(schema, key)) : value;
    }
    return result;
  }
  if (isGranularList(live, schema) && isGranularList(applied, schema)) {
    const rest = itemsByElement(applied, schema);
    const result = live.map((item) => {
      const element = elementOf(item, schema);
      if (!rest.has(element)) return item;
      const value = rest.get(element);
      rest.delete(element);
      return merge(item, value, itemSchema(schema));
    });
    return [...result, ...rest.values()];
  }
  return applied;
}

/**
 * The value without the fields of `removed`. Fields that still have an owner (`kept`) stay, also inside of something
 * that is removed. A container that becomes empty by it is removed too.
 */
export function removeFields(
  value: unknown,
  removed: FieldSet,
  kept: FieldSet,
  schema: Schema | undefined,
): unknown {
  if (isGranularMap(value, schema)) {
    const result: JsonObject = {};
    for (const [key, child] of Object.entries(value)) {
      const left = removedChild(child, `f:${key}`, removed, kept, fieldSchema(schema, key));
      if (left !== undefined) result[key] = left;
    }
    return result;
  }
  if (isGranularList(value, schema)) {
    return value.flatMap((item) => {
      const left = removedChild(item, elementOf(item, schema), removed, kept, itemSchema(schema));
      return left === undefined ? [] : [left];
    });
  }
  return value;
}

function removedChild(
  child: unknown,
  element: string,
  removed: FieldSet,
  kept: FieldSet,
  schema: Schema | undefined,
): unknown {
  const toRemove = removed[element];
  const toKeep = kept[element];
  if (!toRemove) return child;
  if (isMember(toRemove) && !toKeep) return undefined;
  if (isEmptySet(toRemove)) return child;
  const left = removeFields(child, toRemove, toKeep ?? {}, schema);
  return !toKeep && isEmptyContainer(left) && !isEmptyContainer(child) ? undefined : left;
}

function isEmptyContainer(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}
