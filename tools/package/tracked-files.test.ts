import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { trackedFiles } from "./tracked-files.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "spry-tracked-"));
  mkdirSync(path.join(root, "examples/hello"), { recursive: true });
  mkdirSync(path.join(root, "examples/hello2"));
  for (const name of ["examples/hello/ä.js", "examples/hello2/b.js", "LICENSE"])
    writeFileSync(path.join(root, name), "");
});
afterEach(() => rmSync(root, { recursive: true }));

test("what Git does not know is not among them", () => {
  execFileSync("git", ["init", "-q"], { cwd: root });
  execFileSync("git", ["add", "."], { cwd: root });
  writeFileSync(path.join(root, "examples/hello/.env"), "TOKEN=secret");
  expect(trackedFiles(root, ["LICENSE", "examples/hello"])).toEqual([
    "LICENSE",
    "examples/hello/ä.js",
  ]);
  expect(() => trackedFiles(root, ["LICENSE", "examples/nothing"])).toThrow("examples/nothing");
});

test("outside of a checkout there are none", () => {
  expect(() => trackedFiles(root, ["LICENSE"])).toThrow("run this in a checkout");
});
