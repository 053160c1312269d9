import { expect, test } from "vitest";
import { contains } from "./contains.ts";
import { digestOf } from "./digest.ts";

test.each<[string, unknown, unknown, boolean]>([
  ["the same", { a: [1, { b: "c" }] }, { a: [1, { b: "c" }] }, true],
  ["more than desired", { a: 1, defaulted: true }, { a: 1 }, true],
  ["less than desired", {}, { a: 1 }, false],
  ["something else", { a: 2 }, { a: 1 }, false],
  ["a list with one more", { a: [1, 2] }, { a: [1] }, false],
  ["a list in another order", [2, 1], [1, 2], false],
  ["nothing for an empty text", {}, { value: "" }, true],
  ["nothing for an empty map", {}, { emptyDir: {} }, true],
  ["nothing for a zero", {}, { replicas: 0 }, false],
  ["an amount written otherwise", { memory: "1Gi" }, { memory: "1024Mi" }, true],
  ["another amount", { memory: "1Gi" }, { memory: "1000Mi" }, false],
  ["a text for a map", { a: "x" }, { a: { b: 1 } }, false],
  ["null for a value", { a: null }, { a: 1 }, false],
])("containing: %s", (_, observed, desired, expected) => {
  expect(contains(observed, desired)).toBe(expected);
});

test("a digest does not depend on the order of keys, but on everything else", () => {
  expect(digestOf({ a: 1, b: { c: 2, d: 3 } })).toBe(digestOf({ b: { d: 3, c: 2 }, a: 1 }));
  expect(digestOf([1, 2])).not.toBe(digestOf([2, 1]));
  expect(digestOf({ a: { b: 1 } })).not.toBe(digestOf({ a: { b: 2 } }));
});
