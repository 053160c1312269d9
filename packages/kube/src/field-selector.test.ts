import * as fc from "fast-check";
import { expect, test } from "vitest";
import { formatFieldSelector, matchesFields, parseFieldSelector } from "./field-selector.ts";

const fields: Record<string, string> = {
  "metadata.name": "a",
  "spec.nodeName": "",
  "x.y": "1,2=3",
};
const valueOf = (field: string) => fields[field] ?? "";

test.each([
  ["", true],
  ["metadata.name=a", true],
  ["metadata.name==a", true],
  ["metadata.name=a,,x.y!=b,", true],
  ["metadata.name!=a", false],
  ["spec.nodeName=", true],
  ["spec.nodeName!=", false],
  ["metadata.name=a,spec.nodeName=b", false],
  ["x.y=1\\,2\\=3", true],
])("%j selects: %s", (text, matches) => {
  expect(matchesFields(parseFieldSelector(text), valueOf)).toBe(matches);
});

test.each([
  ["metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
  ["=a", "can't understand '=a'"],
  ["a=b\\", "invalid field selector: invalid escape sequence"],
  ["a=b\\x", "invalid field selector: invalid escape sequence: \\x"],
  ["a=b=c", "invalid field selector: unescaped character in value: 61"],
])("%j is refused: %s", (text, problem) => {
  expect(() => parseFieldSelector(text)).toThrow(problem);
});

test("a field selector read back from its text is the same", () => {
  const term = fc.record({
    field: fc.stringMatching(/^[a-z]{1,5}(\.[a-z]{1,5})?$/),
    operator: fc.constantFrom("=" as const, "!=" as const),
    value: fc.string(),
  });
  fc.assert(
    fc.property(fc.array(term, { maxLength: 3 }), (terms) => {
      expect(parseFieldSelector(formatFieldSelector(terms))).toEqual(terms);
    }),
  );
});
