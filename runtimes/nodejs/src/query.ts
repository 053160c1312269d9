type Value = string | Value[] | { [key: string]: Value };

const limits = { parameters: 1000, depth: 5, index: 20 };

/**
 * Reads `a=1&b[c]=2&d[]=3&d[]=4` the way Express' users know it ("extended"): brackets make objects
 * and lists, repeated names make lists. Objects have no prototype, so no name can reach one.
 */
export function parseQuery(text: string): Record<string, unknown> {
  const result = newObject();
  for (const pair of text.split("&", limits.parameters)) {
    if (pair === "") continue;
    const equals = pair.indexOf("=");
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? "" : decode(pair.slice(equals + 1));
    assign(result, keysOf(name), value);
  }
  return plain(result) as Record<string, unknown>;
}

/** While it is being read, a list is an object of its indexes, too. */
interface Node {
  [key: string]: Node | string | string[];
}

const newObject = (): Node => Object.create(null) as Node;

/** `a[b][c]` → a, b, c. Deeper than the limit, the rest stays one name. */
function keysOf(name: string): string[] {
  const open = name.indexOf("[");
  if (open <= 0 || !name.endsWith("]")) return [name];
  const parts = name.slice(open + 1, -1).split("][");
  const kept = parts.slice(0, limits.depth);
  if (parts.length > limits.depth) kept.push(parts.slice(limits.depth).join("]["));
  return [name.slice(0, open), ...kept];
}

function assign(root: Node, keys: string[], value: string): void {
  let node = root;
  for (const [depth, key] of keys.entries()) {
    const name = key === "" ? String(Object.keys(node).length) : key;
    const found = node[name];
    if (depth === keys.length - 1) {
      if (found === undefined) node[name] = value;
      else if (typeof found === "string") node[name] = [found, value];
      else if (Array.isArray(found)) found.push(value);
      return;
    }
    const isNode = found !== undefined && typeof found !== "string" && !Array.isArray(found);
    node = isNode ? found : (node[name] = newObject());
  }
}

/** Objects whose names are small numbers become lists. */
function plain(value: Node | string | string[]): Value {
  if (typeof value === "string" || Array.isArray(value)) return value;
  const names = Object.keys(value);
  const isList =
    names.length > 0 &&
    names.every((name) => /^\d{1,2}$/.test(name) && Number(name) <= limits.index);
  if (isList) return names.map((name) => plain(value[name] ?? ""));
  const result: Record<string, Value> = {};
  for (const name of names)
    if (!(name in Object.prototype)) result[name] = plain(value[name] ?? "");
  return result;
}

function decode(text: string): string {
  const spaced = text.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return spaced;
  }
}
