/** Where a key is in a YAML text, in block style; undefined where it cannot be found. Counted from 1. */
export function lineOf(text: string, keys: readonly (string | number)[]): number | undefined {
  const lines = text.split("\n");
  let at = 0;
  let found: number | undefined;
  for (const key of keys) {
    const index = lines.findIndex((line, i) => i >= at && startsWithKey(line, String(key)));
    if (index < 0) break;
    found = index + 1;
    at = found;
  }
  return found;
}

const startsWithKey = (line: string, key: string): boolean =>
  [key, `"${key}"`, `'${key}'`].some((each) =>
    line.trim().replace(/^- /, "").startsWith(`${each}:`),
  );
