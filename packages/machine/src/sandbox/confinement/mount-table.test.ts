import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../../testing.ts";
import { mountTable } from "./mount-table.ts";

test.each([
  ["a space", "a b", "a\\040b"],
  ["a tab, a line and a number sign", "a\tb\nc#", "a\\011b\\012c\\043"],
  ["a backslash", "a\\b", "a\\134b"],
  ["a no-break space, which is two bytes", "a\u00a0b", "a\u00a0b"],
  ["a line separator, which is three", "a\u2028b", "a\u2028b"],
])("a path with %s is written so that mount(8) reads it as it is", (_, name, written) => {
  const dir = temporaryDirectory();
  const file = path.join(dir, name);
  writeFileSync(file, "");
  const root = path.join(dir, "jail", "root");
  mkdirSync(root, { recursive: true });
  const table = mountTable({ jail: path.join(dir, "jail"), root, tmp: path.join(dir, "tmp") }, [
    { path: file, access: "read" },
  ]);
  expect(table).toContain(`\n${dir}/${written} `);
});
