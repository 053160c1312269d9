/** JSON patches as Kubernetes' library applies them, hostile ones among them. */
import { expect, test } from "vitest";
import { applyJsonPatch } from "./json-patch.ts";

const document = { data: { k: "v" }, list: ["a", "b"] };

test.each<[string, unknown[], unknown]>([
  ["adds a member", [{ op: "add", path: "/data/n", value: 1 }], { ...document, data: { k: "v", n: 1 } }],
  ["adds at an index", [{ op: "add", path: "/list/1", value: "x" }], { ...document, list: ["a", "x", "b"] }],
  ["adds at the end", [{ op: "add", path: "/list/-", value: "x" }], { ...document, list: ["a", "b", "x"] }],
  ["counts from the end", [{ op: "remove", path: "/list/-1" }], { ...document, list: ["a"] }],
  ["replaces what is not there", [{ op: "replace", path: "/data/n", value: 1 }], { ...document, data: { k: "v", n: 1 } }],
  ["tests for nothing", [{ op: "test", path: "/data/n", value: null }], document],
  ["moves", [{ op: "move", from: "/data/k", path: "/list/0" }], { data: {}, list: ["v", "a", "b"] }],
  ["copies", [{ op: "copy", from: "/list", path: "/data/l" }], { ...document, data: { k: "v", l: ["a", "b"] } }],
  ["unescapes", [{ op: "add", path: "/data/a~1b~01", value: 1 }], { ...document, data: { k: "v", "a/b~1": 1 } }],
  ["sees no inherited member", [{ op: "test", path: "/toString", value: null }], document],
  ["replaces the whole", [{ op: "replace", path: "", value: { a: 1 } }], { a: 1 }],
  ["leaves a value that is added and changed later as it is sent", [
    { op: "add", path: "/o", value: { a: 1 } },
    { op: "copy", from: "/o", path: "/p" },
    { op: "add", path: "/o/b", value: 2 },
  ], { ...document, o: { a: 1, b: 2 }, p: { a: 1 } }],
])("%s", (_, operations, expected) => {
  const before = JSON.stringify([document, operations]);
  expect(applyJsonPatch(document, operations)).toEqual(expected);
  expect(JSON.stringify([document, operations])).toBe(before);
}); // prettier-ignore

test.each<[string, unknown, RegExp]>([
  ["no operation", null, /failed to decode path/],
  ["an inherited name as operation", { op: "toString", path: "/data/k" }, /Unexpected kind: toString/],
  ["an operation that is none", { op: ["add"], path: "/data/k" }, /Unexpected kind/],
  ["a relative path", { op: "add", path: "data", value: 1 }, /add operation does not apply: doc is missing path: "data"/],
  ["removal of the whole", { op: "remove", path: "" }, /missing path/],
  ["a move of the whole", { op: "move", from: "", path: "/data" }, /missing path/],
  ["nothing for the whole", { op: "replace", path: "", value: null }, /must be object or array/],
  ["a move into itself", { op: "move", from: "/data", path: "/data/x" }, /missing path/],
  ["an index beyond the end", { op: "add", path: "/list/3", value: 1 }, /invalid index: 3/],
  ["an index of more than 32 bits", { op: "add", path: "/list/4294967296", value: 1 }, /invalid index/],
  ["an index that is a name", { op: "add", path: "/list/length", value: 1 }, /invalid index: length/],
  ["a prototype", { op: "add", path: "/__proto__/x", value: 1 }, /missing path/],
  ["a prototype as a name", { op: "add", path: "/data/__proto__", value: {} }, /missing path/],
  ["removal of what is not there", { op: "remove", path: "/data/x" }, /Unable to remove nonexistent key: x: missing value/],
  ["removal of an inherited member", { op: "remove", path: "/constructor" }, /nonexistent key: constructor/],
  ["a test that fails", { op: "test", path: "/data/k", value: "w" }, /testing value \/data\/k failed: test failed/],
])("%s is refused", (_, operation, message) => {
  expect(() => applyJsonPatch(document, [operation])).toThrow(message);
}); // prettier-ignore

test("copies of copies end at the size of a body", () => {
  const doubling = Array.from({ length: 40 }, () => ({ op: "copy", from: "/list", path: "/list/-" }));
  expect(() => applyJsonPatch(document, doubling)).toThrow(/exceeding the limit 3145728/);
}); // prettier-ignore
