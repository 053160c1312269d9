/** One path of a JSONPath template: `.items[*].metadata.name`, `@.spec['a','b']`, `$..image`. */
import { UserError } from "./user-error.ts";

const wayOut = "write it as in {.status.conditions[0].message}";

/** As Kubernetes prints a result: of an object JSON with its keys in order, safe for a page. */
export function shownValue(value: unknown): string {
  if (typeof value === "string") return value;
  const text = JSON.stringify(value, (_key, each: unknown) =>
    typeof each === "object" && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
  return (text ?? "").replaceAll(
    /[<>&\u2028\u2029]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** All results. `$` begins at the root, everything else at the current item of a range. */
export function findInPath(
  text: string,
  { root, current }: { root: unknown; current: unknown },
): unknown[] {
  const [, start, path = ""] = /^([$@]?)([^]*)$/.exec(text) ?? [];
  let rest = path.replace(/^(?=[^.[])/, ".");
  let found: unknown[] = [start === "$" ? root : current];
  if (rest === ".") return found;
  while (rest !== "") {
    const [whole = "", every, deep, name, inside] = step.exec(rest) ?? [];
    if (whole === "") throw notAPath(text);
    rest = rest.slice(whole.length);
    if (inside !== undefined) found = bracket(inside, found, text);
    else if (every !== undefined) found = found.flatMap(items);
    else if (deep !== undefined) found = found.flatMap((value) => descend(value, deep));
    else found = found.flatMap((value) => member(value, unescaped(name ?? "")));
  }
  return found;
}

/** A wildcard, a name at any depth, a name, or what is in brackets. */
const step =
  /^(?:\.(\*)|\.\.((?:\\.|[\w-])+)|\.((?:\\.|[^.[\s\\])+)|\.?\[((?:"[^"]*"|'[^']*'|\([^)]*\)|[^\]"'(])*)\])/;

function bracket(inside: string, values: readonly unknown[], text: string): unknown[] {
  const expression = inside.trim();
  if (expression === "*") return values.flatMap(items);
  const filter = /^\?\(([^]*)\)$/.exec(expression)?.[1];
  if (filter !== undefined)
    return values.flatMap((value) => items(value).filter(condition(filter.trim(), text)));
  const [, from, to, by] = /^(-?\d*):(-?\d*)(?::(\d+))?$/.exec(expression) ?? [];
  if (from !== undefined)
    return values.flatMap((value) => slice(value, { from, to, by: Number(by ?? 1) }));
  // Of a union, each member has all values.
  const members = expression.match(/"[^"]*"|'[^']*'|[^,\s]+/g) ?? [];
  if (members.length === 0 || !members.every((each) => key.test(each))) throw notAPath(text);
  return members.flatMap((each) => values.flatMap((value) => entry(value, each)));
}

/** A quoted name, or an index. */
const key = /^(?:"([^"]*)"|'([^']*)'|(-?\d+))$/;

function entry(value: unknown, text: string): unknown[] {
  const [, double, single, index] = key.exec(text) ?? [];
  if (index !== undefined) return Array.isArray(value) ? defined(value.at(Number(index))) : [];
  const name = double ?? single ?? "";
  const own = member(value, unescaped(name));
  // In brackets, as Kubernetes has it, a quoted name may be a path.
  if (own.length > 0 || !/(?<!\\)\./.test(name)) return own;
  return findInPath(name, { root: value, current: value });
}

interface Slice {
  from: string;
  to: string | undefined;
  by: number;
}

function slice(value: unknown, { from, to, by }: Slice): unknown[] {
  if (!Array.isArray(value) || by < 1) return [];
  const part = value.slice(Number(from || 0), to ? Number(to) : undefined) as unknown[];
  return part.filter((_each, index) => index % by === 0);
}

/** `@.a == "b"`, `@.n > 1` or `@.a`: whether it is there. */
function condition(filter: string, text: string): (item: unknown) => boolean {
  const [, left = "", operator, right] =
    /^(@[^=!<>]*?)\s*(?:(==|!=|<=|>=|<|>)\s*([^]+))?$/.exec(filter) ?? [];
  if (left === "") throw notAPath(text);
  const valueOf = (item: unknown) => findInPath(left, { root: item, current: item })[0];
  if (operator === undefined) return (item) => valueOf(item) !== undefined;
  const wanted = literalIn(right ?? "", text);
  return (item) => {
    const value = valueOf(item);
    if (operator === "==") return value === wanted;
    // As in Kubernetes: what is not there is not compared.
    if (value === undefined || typeof value !== typeof wanted) return false;
    if (operator === "!=") return value !== wanted;
    const order = (value as number) < (wanted as number) ? -1 : value === wanted ? 0 : 1;
    return (
      { "<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0 }[operator] ?? false
    );
  };
}

function literalIn(text: string, path: string): unknown {
  const quoted = /^(?:"([^"]*)"|'([^']*)')$/.exec(text.trim());
  if (quoted) return quoted[1] ?? quoted[2];
  if (!/^(?:-?\d+(?:\.\d+)?|true|false)$/.test(text.trim())) throw notAPath(path);
  return JSON.parse(text);
}

const notAPath = (text: string) => new UserError(`${text} is not a path`, wayOut);
const unescaped = (name: string): string => name.replaceAll(/\\(.)/g, "$1");
const maxDepth = 100;

/** What has this name, at any depth. */
function descend(value: unknown, name: string, depth = 0): unknown[] {
  if (depth > maxDepth) return [];
  return [
    ...member(value, unescaped(name)),
    ...items(value).flatMap((each) => descend(each, name, depth + 1)),
  ];
}

function items(value: unknown): unknown[] {
  if (Array.isArray(value)) return value as unknown[];
  return typeof value === "object" && value !== null ? Object.values(value) : [];
}

function member(value: unknown, name: string): unknown[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [];
  return Object.hasOwn(value, name) ? defined((value as Record<string, unknown>)[name]) : [];
}

const defined = (value: unknown): unknown[] => (value === undefined ? [] : [value]);
