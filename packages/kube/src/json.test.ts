import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { applyMergePatch, deepEqual, mergePatchBetween } from "./json.ts";

describe("applying a merge patch (RFC 7386, appendix A)", () => {
  test.each([
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [
      ["a", "b"],
      ["c", "d"],
      ["c", "d"],
    ],
    [{ a: "b" }, ["c"], ["c"]],
    [{ a: "foo" }, null, null],
    [{ a: "foo" }, "bar", "bar"],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])("%j with %j is %j", (target, patch, result) => {
    expect(applyMergePatch(target, patch)).toEqual(result);
  });

  test("leaves target and patch as they were", () => {
    const target = { a: { b: 1 } };
    const patch = { a: { c: 2 }, d: null };
    applyMergePatch(target, patch);
    expect([target, patch]).toEqual([{ a: { b: 1 } }, { a: { c: 2 }, d: null }]);
  });

  test("takes __proto__ as a key like any other", () => {
    const patch: unknown = JSON.parse('{"__proto__":{"polluted":true}}');
    const result = applyMergePatch({}, patch) as object;
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
    expect(JSON.stringify(result)).toBe('{"__proto__":{"polluted":true}}');
  });

  test("refuses a patch nested without end", () => {
    const patch: unknown = JSON.parse(`${'{"a":'.repeat(5000)}1${"}".repeat(5000)}`);
    expect(() => applyMergePatch({}, patch)).toThrow("nested deeper");
  });
});

test.each([
  [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
  [{ a: 1, b: undefined }, { a: 1 }, true],
  [{ a: undefined }, { b: 1 }, false],
  [{ a: null }, {}, false],
  [[1, 2], [2, 1], false],
  [[], {}, false],
  ["1", 1, false],
])("%j equals %j: %s", (a, b, equal) => expect(deepEqual(a, b)).toBe(equal));

/** JSON without null, which a merge patch cannot say. */
const sayable = fc.letrec((tie) => ({
  value: fc.oneof({ maxDepth: 4 }, fc.integer(), fc.string(), tie("list"), tie("object")),
  list: fc.array(fc.oneof(fc.integer(), tie("object")), { maxLength: 3 }),
  object: fc.dictionary(fc.constantFrom("a", "b", "c", "__proto__"), tie("value"), { maxKeys: 4 }),
})).object;

test("the patch between two objects turns one into the other", () => {
  fc.assert(
    fc.property(sayable, sayable, (from, to) => {
      const patch = mergePatchBetween(from, to);
      if (patch === undefined) expect(deepEqual(from, to)).toBe(true);
      else expect(deepEqual(applyMergePatch(from, patch), to)).toBe(true);
    }),
  );
});
