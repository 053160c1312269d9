import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
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

describe("after a writer that was killed", () => {
  const wanted = files({ a: "new", "sub/b": "2" });
  test.each<[string, (dir: string) => void]>([
    ["among its files", (dir) => mkdirSync(path.join(dir, "..half"))],
    [
      "before what is read was switched",
      (dir) => {
        mkdirSync(path.join(dir, "..half"));
        writeFileSync(path.join(dir, "..half", "a"), "ne");
        symlinkSync("..half", path.join(dir, "..data_tmp"));
      },
    ],
    ["before the names were linked", (dir) => rmSync(path.join(dir, "a"))],
    ["before names that are no more were removed", (dir) => symlinkSync("x", path.join(dir, "x"))],
  ])("%s, the directory is as it should be", async (_, kill) => {
    for (const before of [wanted, files({ a: "old", c: "4" })]) {
      const dir = path.join(temporaryDirectory(), "v");
      await writeAtomicDirectory(dir, before);
      kill(dir);
      await writeAtomicDirectory(dir, wanted);
      expect(readFileSync(path.join(dir, "a"), "utf8")).toBe("new");
      expect(readFileSync(path.join(dir, "sub", "b"), "utf8")).toBe("2");
      const current = readlinkSync(path.join(dir, "..data"));
      expect(readdirSync(dir).sort()).toEqual(["..data", current, "a", "sub"].sort());
      expect(await writeAtomicDirectory(dir, wanted)).toBe(false);
    }
  });
});

test.skipIf(process.getuid?.() !== 0)(
  "files belong to whom they are for, and stay closed to others",
  async () => {
    const dir = path.join(temporaryDirectory(), "v");
    const secret = new Map([["a", { content: Buffer.from("1"), mode: 0o400 }]]);
    await writeAtomicDirectory(dir, secret, { uid: 2_013_265_921, gid: 2_013_265_921 });
    const { uid, gid, mode } = statSync(path.join(dir, "a"));
    expect([uid, gid, mode & 0o777]).toEqual([2_013_265_921, 2_013_265_921, 0o400]);
  },
);
