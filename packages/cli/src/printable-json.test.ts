import { expect, test } from "vitest";
import { printableJson } from "./printable-json.ts";

test.each([
  ["C0", "\u001B[2J"],
  ["DEL", "\u007F"],
  ["C1", "\u009B2J\u0085"],
  ["marks of direction", "\u202Etxt\u2066\u200F\u061C"],
  ["line separators", "\u2028\u2029"],
  ["tags beyond the basic plane", "\u{E0041}"],
])("%s are escaped, and read back as they were", (_, text) => {
  const value = { [text]: [text] };
  for (const printed of [printableJson(value), printableJson(value, 2)]) {
    expect(printed).toMatch(/^[\n\x20-\x7e]*$/);
    expect(JSON.parse(printed)).toEqual(value);
  }
});

test("all other text stays readable", () => {
  expect(printableJson({ a: 'ä€😀 \\ "' }, 2)).toBe(JSON.stringify({ a: 'ä€😀 \\ "' }, null, 2));
});
