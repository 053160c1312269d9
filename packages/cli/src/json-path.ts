/** Kubernetes' JSONPath templates (`kubectl get -o jsonpath=`): text with expressions in braces, and ranges. */
import { findInPath, shownValue } from "./json-path-steps.ts";
import { UserError } from "./user-error.ts";

const maxLength = 4096;
const wayOut = "write it as in {.status.conditions[0].message}";

/** Text, an expression in braces, or what is repeated for each result of a path. */
type Part = { text: string } | { path: string } | { range: string; parts: Part[] };

/**
 * Text with expressions such as `{.status.conditions[?(@.type=="Running")].status}{"\n"}`, and with
 * `{range .items[*]}…{end}`; several results are joined by blanks. Throws a UserError for what is not supported.
 */
export function renderJsonPath(template: string, root: unknown): string {
  if (template.length > maxLength)
    throw new UserError(`the template has more than ${maxLength} characters`);
  const parts = partsOf(template.includes("{") ? template : `{${template}}`, template);
  return rendered(parts, { root, current: root });
}

function rendered(parts: readonly Part[], place: { root: unknown; current: unknown }): string {
  return parts
    .map((part) => {
      if ("text" in part) return part.text;
      if ("path" in part) return findInPath(part.path, place).map(shownValue).join(" ");
      return findInPath(part.range, place)
        .map((current) => rendered(part.parts, { ...place, current }))
        .join("");
    })
    .join("");
}

/** `shown`: as the user wrote it, for messages. */
function partsOf(template: string, shown: string): Part[] {
  const all: Part[] = [];
  const open: { range: string; parts: Part[] }[] = [];
  const add = (part: Part) => (open.at(-1)?.parts ?? all).push(part);
  let rest = template;
  while (rest !== "") {
    const [whole = "", text, body] =
      /^(?:([^{}]+)|\{((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^{}"'])*)\})/.exec(rest) ?? [];
    if (whole === "") throw new UserError(`${shown} has a brace without its counterpart`, wayOut);
    rest = rest.slice(whole.length);
    if (text !== undefined) {
      add({ text });
      continue;
    }
    const expression = (body ?? "").trim();
    const range = /^range\s+([^]+)$/.exec(expression)?.[1];
    if (range !== undefined) {
      const part = { range, parts: [] };
      add(part);
      open.push(part);
    } else if (expression === "end") {
      if (!open.pop()) throw new UserError(`${shown} has an {end} without a {range …}`, wayOut);
    } else add(literal(expression) ?? { path: expression });
  }
  if (open.length > 0) throw new UserError(`${shown} has a {range …} without its {end}`, wayOut);
  return all;
}

function literal(expression: string): Part | undefined {
  const [, double, single] = /^(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')$/.exec(expression) ?? [];
  const text = double ?? single?.replaceAll(String.raw`\'`, "'").replaceAll(/(?<!\\)"/g, '\\"');
  if (text === undefined) return undefined;
  try {
    return { text: JSON.parse(`"${text}"`) as string };
  } catch {
    throw new UserError(`${expression} is not a text`, String.raw`write it as in {"\n"}`);
  }
}
