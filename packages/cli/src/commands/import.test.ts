import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { projectOf, targetsOf } from "../project/targets.ts";
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

test("several Functions become one file, which is read as it was meant", () => {
  const file = path.join(repository, "stack.yml");
  mkdirSync(path.join(repository, "clean"));
  writeFileSync(path.join(repository, "clean", "handler.js"), "");
  writeFileSync(path.join(repository, "code", "handler.js"), "");
  writeFileSync(
    file,
    `functions:
  shop: { lang: node, handler: ./code, environment: { A: b } }
  clean: { lang: node, handler: ./clean, annotations: { topic: cron-function, schedule: "@daily" } }
`,
  );
  importConfig(file, {});
  expect(readFileSync(path.join(repository, "spry.yaml"), "utf8")).toBe(`runtime: nodejs24
functions:
  shop:
    directory: code
    env:
      A: b
  clean:
    schedules:
      - name: cron
        cron: '@daily'
`);
  const found = targetsOf([repository]).map(projectOf);
  expect(found.map(({ name, root }) => [name, path.basename(root)])).toEqual([
    ["shop", "code"],
    ["clean", "clean"],
  ]);
  expect(() => importConfig(file, {})).toThrow("spry.yaml exists: nothing was written");
  writeFileSync(path.join(repository, "clean", "spry.yaml"), "");
  expect(() => importConfig(file, { force: true })).toThrow("one spry.yaml is for all Functions");
});

test("Functions of different namespaces have a file each", () => {
  const file = path.join(repository, "stack.yml");
  mkdirSync(path.join(repository, "other"));
  writeFileSync(
    file,
    `functions:
  shop: { lang: node, handler: ./code, namespace: a }
  other: { lang: node, handler: ./other, namespace: b }
`,
  );
  importConfig(file, {});
  for (const name of ["code", "other"])
    expect(existsSync(path.join(repository, name, "spry.yaml"))).toBe(true);
});
