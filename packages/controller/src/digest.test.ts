import { expect, test } from "vitest";
import { digestOf } from "./digest.ts";

test("a digest does not depend on the order of keys, and stays what it is in clusters", () => {
  const value = { b: [{ d: 1, c: "é" }, null], a: undefined, 10: true, 9: "", "-1": 2 };
  const same = { "-1": 2, 9: "", 10: true, b: [{ c: "é", d: 1 }, null] };
  expect(digestOf(value)).toBe("e52a26151f71b5d1696cda6aab476664");
  expect(digestOf(same)).toBe(digestOf(value));
  expect(digestOf({ ...same, b: [null, { c: "é", d: 1 }] })).not.toBe(digestOf(value));
});

test("a key that would be a prototype is a key", () => {
  expect(digestOf(JSON.parse('{"__proto__":{"a":1}}'))).not.toBe(digestOf({}));
});
