import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { entriesBelow } from "./entries-below.ts";

test("links to folders above are seen once, however many there are", () => {
  const root = mkdtempSync(join(tmpdir(), "entries-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, "a/b"), { recursive: true });
  writeFileSync(join(root, "a/b/file"), "");
  for (const name of ["one", "two", "three"]) symlinkSync("../..", join(root, "a/b", name));
  symlinkSync("/", join(root, "out"));
  const names = entriesBelow(root).map((each) => relative(root, join(each.parentPath, each.name)));
  expect(names.sort()).toEqual(["a", "a/b", "a/b/file", "a/b/one", "a/b/three", "a/b/two", "out"]);
});
