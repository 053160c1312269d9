/**
 * JSON whose text is kept (RFC 8259). `JSON.parse` and `JSON.stringify` lose digits of numbers above 2^53, the form of numbers
 * (`1.10`, `1e400`, `-0`), the order of keys that look like array indexes, and all but the last of equal keys: what belongs to a user
 * and is passed on is cut out of its text instead. All functions here expect a text that `JSON.parse` accepts.
 */

/** A part of a text: from `start` to before `end`, in UTF-16 units. */
export interface Span {
  start: number;
  end: number;
}

export interface JsonMember extends Span {
  name: string;
}

/** The members of the object that begins at `at` or after white space there; the spans are those of their values. */
export function membersOf(text: string, at = 0): JsonMember[] {
  const members: JsonMember[] = [];
  // Behind `{`.
  let next = skipSpace(text, skipSpace(text, at) + 1);
  while (text[next] !== "}") {
    const nameEnd = skipString(text, next);
    const name = JSON.parse(text.slice(next, nameEnd)) as string;
    const start = skipSpace(text, skipSpace(text, nameEnd) + 1);
    const end = skipValue(text, start);
    members.push({ name, start, end });
    next = skipSpace(text, end);
    if (text[next] === ",") next = skipSpace(text, next + 1);
  }
  return members;
}

/** The elements of the array that begins at `at` or after white space there. */
export function elementsOf(text: string, at = 0): Span[] {
  const elements: Span[] = [];
  // Behind `[`.
  let next = skipSpace(text, skipSpace(text, at) + 1);
  while (text[next] !== "]") {
    const end = skipValue(text, next);
    elements.push({ start: next, end });
    next = skipSpace(text, end);
    if (text[next] === ",") next = skipSpace(text, next + 1);
  }
  return elements;
}

/** The texts of the elements of the array that the member `name` of an object is; none without such a member. */
export function elementTexts(text: string, name: string): string[] {
  const member = membersOf(text).findLast((each) => each.name === name);
  if (!member) return [];
  return elementsOf(text, member.start).map(({ start, end }) => text.slice(start, end));
}

/** The text of the value of the member `name` of an object; undefined without such a member. */
export function memberText(text: string, name: string): string | undefined {
  const member = membersOf(text).findLast((each) => each.name === name);
  return member && text.slice(member.start, member.end);
}

/** A value that is written as this text. */
export class JsonText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** As `JSON.stringify` without white space, with the `JsonText`s in it as they are. */
export function stringifyJson(value: unknown): string {
  if (value instanceof JsonText) return value.text;
  if (Array.isArray(value)) return `[${value.map(stringifyJson).join(",")}]`;
  const isPlain = typeof value === "object" && value !== null && !("toJSON" in value);
  if (!isPlain) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, each]) => each !== undefined);
  return `{${members.map(([name, each]) => `${JSON.stringify(name)}:${stringifyJson(each)}`).join(",")}}`;
}

/** The same values and keys in the same order, in lines that are indented as `JSON.stringify` does. */
export function indentJson(text: string, width: number): string {
  const parts: string[] = [];
  let depth = 0;
  const line = () => `\n${" ".repeat(depth * width)}`;
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    const character = text[at] ?? "";
    if (character === "{" || character === "[") {
      const close = skipSpace(text, at + 1);
      if (text[close] === "}" || text[close] === "]") {
        parts.push(character, text[close]);
        at = close + 1;
        continue;
      }
      depth++;
      parts.push(character, line());
      at++;
    } else if (character === "}" || character === "]") {
      depth--;
      parts.push(line(), character);
      at++;
    } else if (character === ",") {
      parts.push(",", line());
      at++;
    } else if (character === ":") {
      parts.push(": ");
      at++;
    } else {
      const end = skipValue(text, at);
      parts.push(text.slice(at, end));
      at = end;
    }
  }
  return parts.join("");
}

function skipSpace(text: string, at: number): number {
  while (isSpace(text.charCodeAt(at))) at++;
  return at;
}

const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

/** To behind the string that begins at `at`. */
function skipString(text: string, at: number): number {
  for (let quote = text.indexOf('"', at + 1); ; quote = text.indexOf('"', quote + 1)) {
    let before = quote - 1;
    while (text.charCodeAt(before) === 0x5c) before--;
    // An odd number of backslashes escapes the quote.
    if ((quote - before) % 2 === 1) return quote + 1;
  }
}

/** To behind the value that begins at `at`, without recursion: data may be nested as deep as its text is long. */
function skipValue(text: string, at: number): number {
  let depth = 0;
  for (;;) {
    switch (text[at]) {
      case '"':
        at = skipString(text, at);
        break;
      case "{":
      case "[":
        depth++;
        at++;
        break;
      case "}":
      case "]":
        depth--;
        at++;
        break;
      case ",":
      case ":":
        at++;
        break;
      default:
        at = isSpace(text.charCodeAt(at)) ? at + 1 : skipWord(text, at);
    }
    if (depth === 0) return at;
  }
}

/** A number, `true`, `false` or `null`. */
function skipWord(text: string, at: number): number {
  while (at < text.length && /[-+.\w]/.test(text[at] ?? "")) at++;
  return at;
}
