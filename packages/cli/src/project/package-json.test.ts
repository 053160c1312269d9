import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readPackageJson } from "./package-json.ts";

let dir = "";
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), "manifest-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

function read(text: string) {
  writeFileSync(path.join(dir, "package.json"), text);
  return readPackageJson(dir);
}

test("a byte order mark does not belong to it, as for npm", () => {
  expect(read('\uFEFF{ "type": "module" }')).toEqual({ type: "module" });
});

test.each(["null", "[]", '"x"', "3"])("%s is refused with the file's name", (text) => {
  expect(() => read(text)).toThrow(/package.json must be an object/);
});

test("what is not JSON is refused, without it nothing is declared", () => {
  expect(() => read("{")).toThrow(/package.json is not valid JSON/);
  rmSync(path.join(dir, "package.json"));
  expect(readPackageJson(dir)).toEqual({});
});
