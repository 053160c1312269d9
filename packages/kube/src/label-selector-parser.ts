import { StatusError } from "./errors.ts";
import { type LabelRequirement } from "./label-selector.ts";

/**
 * Reads the text form of label selectors, and says what is wrong with one in the words of
 * `apimachinery/pkg/labels`, which people who use kubectl know.
 */

const maxSelectorLength = 16 * 1024;
const namePattern = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const prefixPattern = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

const nameRule =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const keyRule =
  "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const prefixRule = String.raw`prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`;
const valueRule =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/** What is wrong with a label key (`prefix/name`), problem by problem; none when it is fine. */
export function labelKeyProblems(key: string): string[] {
  const parts = key.split("/");
  if (parts.length > 2) return [keyRule];
  const problems: string[] = [];
  const name = parts.at(-1) ?? "";
  if (parts.length === 2) {
    const prefix = parts[0] ?? "";
    if (prefix === "") problems.push("prefix part must be non-empty");
    else {
      if (prefix.length > 253) problems.push("prefix part must be no more than 253 bytes");
      if (!prefixPattern.test(prefix)) problems.push(prefixRule);
    }
  }
  if (name === "") problems.push("name part must be non-empty");
  else if (name.length > 63) problems.push("name part must be no more than 63 bytes");
  if (!namePattern.test(name)) problems.push(nameRule);
  return problems;
}

/** What is wrong with a label value. */
export function labelValueProblems(value: string): string[] {
  const problems: string[] = [];
  if (value.length > 63) problems.push("must be no more than 63 bytes");
  if (value !== "" && !namePattern.test(value)) problems.push(valueRule);
  return problems;
}

interface Token {
  kind: "identifier" | "operator" | "end";
  text: string;
}

const lexer = /\s*(?:(==|!=|=|!|<|>|\(|\)|,)|([^\s=!<>(),]+)|$)/y;
const binaryOperators = ["in", "notin", "=", "==", "!=", "gt", "lt"];

/** Reads a selector; throws a `StatusError` 400. */
export function parseRequirements(text: string): LabelRequirement[] {
  if (text.length > maxSelectorLength) {
    throw refusal(`the selector must not be longer than ${maxSelectorLength} characters`);
  }
  return new Parser(tokensOf(text)).parse();
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  lexer.lastIndex = 0;
  for (;;) {
    const [, operator, identifier] = lexer.exec(text) ?? [];
    if (operator !== undefined) tokens.push({ kind: "operator", text: operator });
    else if (identifier !== undefined) tokens.push({ kind: "identifier", text: identifier });
    else return [...tokens, { kind: "end", text: "" }];
  }
}

class Parser {
  readonly #tokens: Token[];
  #at = 0;

  constructor(tokens: Token[]) {
    this.#tokens = tokens;
  }

  parse(): LabelRequirement[] {
    const requirements: LabelRequirement[] = [];
    while (this.#peek().kind !== "end") {
      const { kind, text } = this.#peek();
      if (kind !== "identifier" && text !== "!") {
        throw refusal(`found '${text}', expected: !, identifier, or 'end of string'`);
      }
      requirements.push(this.#requirement());
      const next = this.#take();
      if (next.kind === "end") break;
      if (next.text !== ",")
        throw refusal(`found '${next.text}', expected: ',' or 'end of string'`);
      const after = this.#peek();
      if (after.kind !== "identifier" && after.text !== "!") {
        throw refusal(`found '${after.text}', expected: identifier after ','`);
      }
    }
    return requirements;
  }

  #requirement(): LabelRequirement {
    const isNot = this.#peek().text === "!" && this.#take() !== undefined;
    const key = this.#take();
    if (key.kind !== "identifier") throw unreadable(`found '${key.text}', expected: identifier`);
    checkKey(key.text);
    const next = this.#peek();
    if (isNot || next.kind === "end" || next.text === ",") {
      return { key: key.text, operator: isNot ? "DoesNotExist" : "Exists", values: [] };
    }
    const operator = this.#take().text;
    if (operator === "in" || operator === "notin") {
      const values = this.#values();
      checkValues(key.text, values);
      return { key: key.text, operator: operator === "in" ? "In" : "NotIn", values };
    }
    if (!["=", "==", "!=", "<", ">"].includes(operator)) {
      throw unreadable(`found '${operator}', expected: ${binaryOperators.join(", ")}`);
    }
    return this.#comparison(key.text, operator);
  }

  #comparison(key: string, sign: string): LabelRequirement {
    const { kind, text } = this.#peek();
    if (kind === "operator" && text !== ",") {
      throw unreadable(`found '${text}', expected: identifier`);
    }
    const value = kind === "identifier" ? this.#take().text : "";
    if (sign === ">" || sign === "<") {
      if (!/^[+-]?\d{1,18}$/.test(value)) {
        const detail = "for 'Gt', 'Lt' operators, the value must be an integer";
        throw unreadable(`values[0]: Invalid value: ${JSON.stringify(value)}: ${detail}`);
      }
    }
    checkValues(key, [value]);
    const operator = ({ "!=": "NotIn", ">": "Gt", "<": "Lt" } as const)[sign] ?? "In";
    return { key, operator, values: [value] };
  }

  #values(): string[] {
    const open = this.#take();
    if (open.text !== "(") throw unreadable(`found '${open.text}' expected: '('`);
    const values = new Set<string>();
    for (let pending = true; ;) {
      const { kind, text } = this.#take();
      if (kind === "identifier") {
        values.add(text);
        pending = false;
        const next = this.#peek();
        if (next.text === "," || next.text === ")") continue;
        throw unreadable(`found '${next.text}', expected: ',' or ')'`);
      }
      // Nothing before a comma or a parenthesis is an empty value.
      if (text !== "," && text !== ")") {
        throw unreadable(`found '${text}', expected: ',', or identifier`);
      }
      if (pending) values.add("");
      if (text === ")") return [...values].sort();
      pending = true;
    }
  }

  #peek(): Token {
    return this.#tokens[this.#at] ?? { kind: "end", text: "" };
  }

  #take(): Token {
    const token = this.#peek();
    this.#at++;
    return token;
  }
}

function checkKey(key: string): void {
  const problems = labelKeyProblems(key);
  if (problems.length === 0) return;
  throw unreadable(`<nil>: Invalid value: ${JSON.stringify(key)}: ${problems.join("; ")}`);
}

function checkValues(key: string, values: string[]): void {
  for (const [index, value] of values.entries()) {
    const problems = labelValueProblems(value);
    if (problems.length === 0) continue;
    const shown = JSON.stringify(value);
    throw unreadable(`values[${index}][${key}]: Invalid value: ${shown}: ${problems.join("; ")}`);
  }
}

function unreadable(problem: string): StatusError {
  return refusal(`unable to parse requirement: ${problem}`);
}

function refusal(message: string): StatusError {
  return new StatusError({ code: 400, message });
}
