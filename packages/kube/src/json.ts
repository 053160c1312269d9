/** Plain JSON values: comparing them, and RFC 7386 merge patches between them. */
type JsonObject = Record<string, unknown>;

/** Deeper documents are refused: the functions here recurse. */
const maxDepth = 512;

/**
 * Whether two JSON values are equal. The order of keys does not matter, and a key whose value is `undefined` counts
 * as missing, as for `JSON.stringify`.
 */
export function deepEqual(a: unknown, b: unknown, depth = 0): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  checkDepth(depth);
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => deepEqual(item, b[i], depth + 1));
  }
  const left = a as JsonObject;
  const right = b as JsonObject;
  let fields = 0;
  for (const key of Object.keys(left)) {
    if (left[key] === undefined) continue;
    if (!Object.hasOwn(right, key) || !deepEqual(left[key], right[key], depth + 1)) return false;
    fields++;
  }
  for (const key of Object.keys(right)) if (right[key] !== undefined) fields--;
  return fields === 0;
}

/** The target with an RFC 7386 patch applied; neither argument is changed. */
export function applyMergePatch(target: unknown, patch: unknown, depth = 0): unknown {
  if (!isObject(patch)) return patch;
  checkDepth(depth);
  const result: JsonObject = isObject(target) ? { ...target } : {};
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === null) delete result[key];
    else if (value !== undefined) {
      const current = Object.hasOwn(result, key) ? result[key] : undefined;
      setOwn(result, key, applyMergePatch(current, value, depth + 1));
    }
  }
  return result;
}

/**
 * The merge patch that turns `from` into `to`; undefined when they are equal. Lists are replaced as
 * wholes, and a `null` inside `to` cannot be said in a merge patch (RFC 7386 section 1): it removes.
 */
export function mergePatchBetween(from: unknown, to: unknown, depth = 0): unknown {
  if (!isObject(from) || !isObject(to)) return deepEqual(from, to) ? undefined : to;
  checkDepth(depth);
  const patch: JsonObject = {};
  for (const key of definedKeys(from)) {
    if (!Object.hasOwn(to, key) || to[key] === undefined) setOwn(patch, key, null);
  }
  for (const key of definedKeys(to)) {
    if (!Object.hasOwn(from, key) || from[key] === undefined) setOwn(patch, key, to[key]);
    else {
      const change = mergePatchBetween(from[key], to[key], depth + 1);
      if (change !== undefined) setOwn(patch, key, change);
    }
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function definedKeys(object: JsonObject): string[] {
  return Object.keys(object).filter((key) => object[key] !== undefined);
}

/** Assigning to `__proto__` would change the object's prototype instead of its data. */
function setOwn(object: JsonObject, key: string, value: unknown): void {
  if (key !== "__proto__") object[key] = value;
  else {
    Object.defineProperty(object, key, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  }
}

function checkDepth(depth: number): void {
  if (depth > maxDepth) throw new Error(`value is nested deeper than ${maxDepth} levels`);
}
