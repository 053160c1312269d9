/** Where a key, or an element of a list, is in a YAML text, in block style; undefined where it cannot be found. Counted from 1. */
export function lineOf(text: string, keys: readonly (string | number)[]): number | undefined {
  const lines = text.split("\n");
  let at = 0;
  let found: number | undefined;
  for (const key of keys) {
    const index = typeof key === "number" ? elementAt(lines, at, key) : keyAt(lines, at, key);
    if (index < 0) break;
    found = index + 1;
    // The first key of an element is in its line.
    at = typeof key === "number" ? index : found;
  }
  return found;
}

const keyAt = (lines: readonly string[], at: number, key: string): number =>
  lines.findIndex((line, i) => i >= at && startsWithKey(line, key));

/** The elements of a list begin in one column. */
function elementAt(lines: readonly string[], at: number, number: number): number {
  const first = lines.findIndex((line, i) => i >= at && isElement(line));
  if (first < 0) return -1;
  const indent = indentOf(lines[first] ?? "");
  let left = number;
  return lines.findIndex(
    (line, i) => i >= first && isElement(line) && indentOf(line) === indent && left-- === 0,
  );
}

const isElement = (line: string): boolean => /^\s*-(?:\s|$)/.test(line);
const indentOf = (line: string): number => line.length - line.trimStart().length;

const startsWithKey = (line: string, key: string): boolean =>
  [key, `"${key}"`, `'${key}'`].some((each) =>
    line.trim().replace(/^- /, "").startsWith(`${each}:`),
  );
