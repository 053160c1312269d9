import { expect, test } from "vitest";
import { inAnyCase } from "./any-case.ts";

const fields = inAnyCase({ "x-a": "1", host: "me" });

test.each([
  ["x-a", "1"],
  ["X-A", "1"],
  ["Host", "me"],
  ["X-B", undefined],
  ["__PROTO__", undefined],
])("%s is %s", (name, value) => {
  expect(fields[name]).toBe(value);
});

test("what is a plain object stays one", () => {
  expect(Object.keys(fields)).toEqual(["x-a", "host"]);
  expect(JSON.stringify(fields)).toBe('{"x-a":"1","host":"me"}');
  expect(structuredClone(fields)).toEqual({ "x-a": "1", host: "me" });
  expect({ ...fields }).toEqual({ "x-a": "1", host: "me" });
  expect(Object.hasOwn(fields, "X-A")).toBe(false);
  expect(String(fields)).toBe("[object Object]");
});
