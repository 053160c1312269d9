import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { writeAtomicDirectory } from "./atomic-directory.ts";

const files = (entries: Record<string, string>) =>
  new Map(
    Object.entries(entries).map(([name, text]) => [
      name,
      { content: Buffer.from(text), mode: 0o644 },
    ]),
  );

test("files appear, change and go as a whole", async () => {
  const dir = path.join(temporaryDirectory(), "v");
  const read = (name: string) => readFileSync(path.join(dir, name), "utf8");
  expect(await writeAtomicDirectory(dir, files({ a: "1", "sub/b": "2" }))).toBe(true);
  expect([read("a"), read("sub/b")]).toEqual(["1", "2"]);
  expect(await writeAtomicDirectory(dir, files({ a: "1", "sub/b": "2" }))).toBe(false);
  expect(await writeAtomicDirectory(dir, files({ a: "3", c: "4" }))).toBe(true);
  expect([read("a"), read("c"), existsSync(path.join(dir, "sub"))]).toEqual(["3", "4", false]);
  expect(readdirSync(dir).filter((name) => !name.startsWith(".."))).toEqual(["a", "c"]);
});

test("no files at all are an empty directory", async () => {
  const dir = path.join(temporaryDirectory(), "v");
  await writeAtomicDirectory(dir, files({}));
  expect(readdirSync(dir).filter((name) => !name.startsWith(".."))).toEqual([]);
});
