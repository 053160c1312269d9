import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { importConfig } from "./import.ts";

let outer: string;
let repository: string;
beforeEach(() => {
  outer = mkdtempSync(path.join(tmpdir(), "spry-import-"));
  repository = path.join(outer, "repository");
  mkdirSync(path.join(repository, "code"), { recursive: true });
  mkdirSync(path.join(outer, "home"));
});
afterEach(() => rmSync(outer, { recursive: true }));

const stack = (handler: string): string => {
  const file = path.join(repository, "stack.yml");
  writeFileSync(file, `functions:\n  shop:\n    lang: node\n    handler: ${handler}\n`);
  return file;
};

test.each(["../home", "./link"])("nothing is written outside of the directory: %s", (handler) => {
  symlinkSync("../home", path.join(repository, "link"));
  expect(() => importConfig(stack(handler), {})).toThrow("is outside of its own");
  expect(readdirSync(path.join(outer, "home"))).toEqual([]);
});

test("a link in the place of the configuration is not followed", () => {
  const target = path.join(repository, "code", "spry.yaml");
  symlinkSync("../../home/profile", target);
  expect(() => importConfig(stack("./code"), {})).toThrow("exists: nothing was written");
  importConfig(stack("./code"), { force: true });
  expect(existsSync(path.join(outer, "home", "profile"))).toBe(false);
  expect(lstatSync(target).isFile()).toBe(true);
});
