import { StatusError } from "./errors.ts";

/** One term of a field selector; all terms must hold. */
export interface FieldRequirement {
  /** A path like `spec.nodeName`. */
  field: string;
  operator: "=" | "!=";
  value: string;
}

const maxSelectorLength = 16 * 1024;

/**
 * Reads `?fieldSelector=`: `metadata.name=a,spec.nodeName!=b`. In values `\\`, `\,` and `\=` stand
 * for the second character; empty terms are passed over. Throws a `StatusError` 400.
 */
export function parseFieldSelector(text: string): FieldRequirement[] {
  if (text.length > maxSelectorLength) {
    throw refusal(`invalid selector: it must not be longer than ${maxSelectorLength} characters`);
  }
  if (text.trim() === "") return [];
  return (text.match(/(?:\\.|[^,])+/gs) ?? []).map((term) => {
    const match = /^\s*([A-Za-z0-9_.\-/[\]]+)(!=|==?)(.*)$/s.exec(term);
    if (!match) throw refusal(`invalid selector: '${text}'; can't understand '${term}'`);
    const [, field = "", sign, value = ""] = match;
    return { field, operator: sign === "!=" ? "!=" : "=", value: unescaped(value) };
  });
}

function unescaped(value: string): string {
  return value.replace(/\\(.?)|=/gs, (found, second: string | undefined) => {
    if (found === "=") throw refusal("invalid field selector: unescaped character in value: 61");
    if (second && "\\,=".includes(second)) return second;
    throw refusal(`invalid field selector: invalid escape sequence: ${found}`);
  });
}

/** The text form; `parseFieldSelector` reads it back. */
export function formatFieldSelector(requirements: readonly FieldRequirement[]): string {
  return requirements
    .map(({ field, operator, value }) => field + operator + value.replace(/[\\,=]/g, "\\$&"))
    .join(",");
}

/** Whether all terms hold; `valueOf` gives a field's value as text, empty when it is not set. */
export function matchesFields(
  requirements: readonly FieldRequirement[],
  valueOf: (field: string) => string,
): boolean {
  return requirements.every(
    ({ field, operator, value }) => (valueOf(field) === value) === (operator === "="),
  );
}

function refusal(message: string): StatusError {
  return new StatusError({ code: 400, message });
}
