import { RE2JS } from "re2js";

/**
 * A regular expression of a user for the whole of a text: Go's syntax, as in the original, and time that is linear in
 * the text.
 * @throws if it is not valid
 */
export function wholeTextRegex(pattern: string): { test(text: string): boolean } {
  const compiled = RE2JS.compile(pattern);
  return { test: (text) => compiled.matches(text) };
}

/** A sentence; undefined if the pattern is valid. */
export function regexProblem(pattern: string): string | undefined {
  try {
    RE2JS.compile(pattern);
    return undefined;
  } catch {
    return `${JSON.stringify(pattern)} is not a valid regular expression (RE2 syntax)`;
  }
}
