import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { withoutManagedFields } from "./managed-fields.ts";

describe("a text without its managed fields", () => {
  test.each([
    ['{"items":[{"a":1,"managedFields":[{"x":["]"]}]},{"b":2}]}', '{"items":[{"a":1},{"b":2}]}'],
    ['{"managedFields":[{"f:\\"]":{}}],"name":"x"}', '{"name":"x"}'],
    ['{"managedFields":[]}', "{}"],
    ['{"a":1,"managedFields":[[],[[]]],"b":2}', '{"a":1,"b":2}'],
    ['{"data":{"managedFields":"[","x":"\\"managedFields\\":["}}', undefined],
    ['{"managedFields":null}', undefined],
    ['{"\\"managedFields":[1],"a":2}', undefined],
    [
      '{"managedFields":[1],"b":{"managedFields":[2]},"c":[{"managedFields":[3]}]}',
      '{"b":{},"c":[{}]}',
    ],
    ['{"managedFields":[{"cut":', undefined],
  ])("%s", (text, expected) => {
    expect(withoutManagedFields(text)).toBe(expected ?? text);
  });

  test("says the same of everything else, whatever strings hold", () => {
    const name = fc.oneof(fc.constantFrom("managedFields", '"managedFields'), fc.string());
    const text = fc.oneof(fc.constantFrom('"managedFields":[', "]", '\\"', "\\"), fc.string());
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        text,
        fc.integer(),
        fc.array(tie("value"), { maxLength: 4 }),
        fc.dictionary(name, tie("value"), { maxKeys: 4 }),
      ),
    }));
    const isLeftOut = (key: string, each: unknown) =>
      key === "managedFields" && Array.isArray(each);
    fc.assert(
      fc.property(value, (each) => {
        const said = JSON.stringify(each);
        const expected: unknown = JSON.parse(said, function (this: object, key, inner: unknown) {
          return isLeftOut(key, inner) && !Array.isArray(this) ? undefined : inner;
        });
        expect(JSON.parse(withoutManagedFields(said))).toEqual(expected);
      }),
      { seed: 1, numRuns: 2000 },
    );
  });
});
