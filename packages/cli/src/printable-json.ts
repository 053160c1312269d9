/**
 * A value as JSON for a terminal, and the same value for programs: characters that could control a terminal or reorder what
 * is read (`printable`) are escaped, which JSON leaves to the writer (RFC 8259 section 7). JSON.stringify escapes only C0.
 */
export function printableJson(value: unknown, indent?: number): string {
  return printableJsonText(JSON.stringify(value, undefined, indent));
}

/** The same of a text of JSON, which stays as it is otherwise. */
export function printableJsonText(text: string): string {
  return text.replaceAll(/[\u007F-\u009F\p{Cf}\u2028\u2029]/gu, escaped);
}

/** Each of its UTF-16 units. */
const escaped = (text: string): string =>
  Array.from(
    { length: text.length },
    (_, at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, "0")}`,
  ).join("");
