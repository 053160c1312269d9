/** Kubernetes' JSONPath templates (`kubectl get -o jsonpath=`), as far as one object needs them: fields, indexes, filters. */
import { UserError } from "./user-error.ts";

const maxLength = 4096;
const wayOut = "write it as in {.status.conditions[0].message}";

/**
 * Text with expressions in braces, such as `{.status.conditions[?(@.type=="Running")].status}{"\n"}`; several results are
 * joined by blanks. Throws a UserError for what is not supported (`range`, functions).
 */
export function renderJsonPath(template: string, root: unknown): string {
  if (template.length > maxLength)
    throw new UserError(`the template has more than ${maxLength} characters`);
  const whole = template.includes("{") ? template : `{${template}}`;
  const expressions = /\{((?:"[^"]*"|'[^']*'|[^{}"'])*)\}/g;
  if (/[{}]/.test(whole.replaceAll(expressions, "")))
    throw new UserError(`${template} has a brace without its counterpart`, wayOut);
  return whole.replaceAll(expressions, (_all, body: string) => expression(body.trim(), root));
}

function expression(text: string, root: unknown): string {
  const literal = /^"([^"]*)"$|^'([^']*)'$/.exec(text);
  if (literal) return JSON.parse(`"${literal[1] ?? literal[2]}"`) as string;
  if (/^(?:range|end)\b/.test(text))
    throw new UserError("range is not supported in jsonpath", "use kubectl, or -o json with jq");
  return find(text, root).map(shown).join(" ");
}

const shown = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "");

/** One step of a path, by its first group that matches: name, quoted name, index, wildcard, filter. */
const step =
  /^(?:\.?\[\?\(@\.([\w.-]+)\s*(==|!=)\s*(?:"([^"]*)"|'([^']*)'|(\w+))\)\]|\.?\[(?:'([^']+)'|"([^"]+)"|(-?\d+)|(\*))\]|\.(\*)|\.((?:\\.|[^.[\s])+))/;

function find(text: string, root: unknown): unknown[] {
  let rest = text.replace(/^\$/, "").replace(/^(?=[^.[])/, ".");
  let found: unknown[] = [root];
  if (rest === ".") return found;
  while (rest !== "") {
    const match = step.exec(rest);
    if (!match) throw new UserError(`${text} is not a path`, wayOut);
    rest = rest.slice(match[0].length);
    const [, filter, operator, a, b, c, quoted, doubleQuoted, index, all, every, name] = match;
    found = found.flatMap((value) => {
      if (filter !== undefined) {
        const wanted = a ?? b ?? c;
        const isEqual = (item: unknown) => shown(find(filter, item)[0]) === wanted;
        return items(value).filter((item) => isEqual(item) === (operator === "=="));
      }
      if (all !== undefined || every !== undefined) return items(value);
      if (index !== undefined) return Array.isArray(value) ? defined(value.at(Number(index))) : [];
      return member(value, quoted ?? doubleQuoted ?? name?.replaceAll(/\\(.)/g, "$1") ?? "");
    });
  }
  return found;
}

function items(value: unknown): unknown[] {
  if (Array.isArray(value)) return value as unknown[];
  return typeof value === "object" && value !== null ? Object.values(value) : [];
}

function member(value: unknown, name: string): unknown[] {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return [];
  return defined((value as Record<string, unknown>)[name]);
}

const defined = (value: unknown): unknown[] => (value === undefined ? [] : [value]);
