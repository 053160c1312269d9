import { integerOf } from "@spry/kube";

/**
 * The JSONPath of printer columns and scale subresources: `.a.b`, `['a.b']`, `[0]`, `[-1]`, `[*]`,
 * `[?(@.type=="Ready")]` (also with other comparisons), and `\.` inside a name.
 */
type Step = (values: unknown[]) => unknown[];

const maxLength = 1024;

/** What a path selects, in order; a path to missing fields selects nothing. Throws when the path cannot be parsed. */
export function compilePath(path: string): (value: unknown) => unknown[] {
  const steps = parseSteps(path);
  return (value) => {
    let values: unknown[] = [value];
    for (const step of steps) values = step(values);
    return values.filter((each) => each !== undefined);
  };
}

function parseSteps(path: string): Step[] {
  let rest = path
    .trim()
    .replace(/^\{(.*)\}$/s, "$1")
    .replace(/^\$/, "");
  if (rest.length > maxLength) throw new Error(`path is longer than ${maxLength} characters`);
  const steps: Step[] = [];
  while (rest !== "" && rest !== ".") {
    const name = /^\.?((?:[^.[\]\\*]|\\.)+)/.exec(rest);
    const wildcard = /^(?:\.\*|\[\*\])/.exec(rest);
    const quoted = /^\[(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]/.exec(rest);
    const index = /^\[(-?\d+)\]/.exec(rest);
    const filter = /^\[\?\(\s*(.+?)\s*\)\]/s.exec(rest);
    const found = wildcard ?? quoted ?? index ?? filter ?? name;
    if (!found)
      throw new Error(`cannot read path ${JSON.stringify(path)} at ${JSON.stringify(rest)}`);
    if (found === wildcard) steps.push((values) => values.flatMap(childrenOf));
    else if (found === index) steps.push(at(Number(index?.[1])));
    else if (found === filter) steps.push(filtered(filter?.[1] ?? ""));
    else steps.push(field((found[1] ?? found[2] ?? "").replace(/\\(.)/g, "$1")));
    rest = rest.slice(found[0].length);
  }
  return steps;
}

function childrenOf(value: unknown): unknown[] {
  return typeof value === "object" && value !== null ? Object.values(value) : [];
}

function field(name: string): Step {
  return (values) =>
    values.flatMap((value) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, name)
        ? [(value as Record<string, unknown>)[name]]
        : [],
    );
}

function at(index: number): Step {
  return (values) => values.flatMap((value) => (Array.isArray(value) ? [value.at(index)] : []));
}

function filtered(condition: string): Step {
  const matches = predicate(condition);
  return (values) => values.flatMap((value) => childrenOf(value).filter(matches));
}

function predicate(condition: string): (item: unknown) => boolean {
  const match = /^@(\S*?)\s*(?:(==|!=|>=|<=|>|<)\s*(.+))?$/s.exec(condition);
  if (!match) throw new Error(`cannot read the condition ${JSON.stringify(condition)}`);
  const [, path = "", operator, right] = match;
  const left = compilePath(path);
  if (!operator || right === undefined) return (item) => left(item).length > 0;
  const wanted = literal(right.trim());
  return (item) => compared(left(item)[0], operator, wanted);
}

function literal(text: string): unknown {
  const quoted = /^(?:'(.*)'|"(.*)")$/s.exec(text);
  if (quoted) return quoted[1] ?? quoted[2];
  if (text === "true" || text === "false") return text === "true";
  if (/^-?\d+$/.test(text)) return integerOf(text);
  const number = Number(text);
  return Number.isNaN(number) ? text : number;
}

function compared(left: unknown, operator: string, right: unknown): boolean {
  switch (operator) {
    case "==":
      return left === right;
    case "!=":
      return left !== right;
    case ">":
      return (left as number) > (right as number);
    case "<":
      return (left as number) < (right as number);
    case ">=":
      return (left as number) >= (right as number);
    default:
      return (left as number) <= (right as number);
  }
}
