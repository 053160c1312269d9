import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { realArguments } from "./exec-arguments.ts";

const dir = realpathSync(mkdtempSync(path.join(tmpdir(), "exec-arguments-")));
const root = path.join(dir, "root");
const volume = path.join(dir, "a, b&c");
mkdirSync(volume);
mkdirSync(root);
writeFileSync(path.join(volume, "file"), "");
symlinkSync(volume, path.join(root, "data"));
afterAll(() => rmSync(dir, { recursive: true }));

test.each([
  [
    ["ls", "/data"],
    ["ls", volume],
  ],
  [
    ["cat", "/data/../data/file"],
    ["cat", `${volume}/file`],
  ],
  [
    ["x", "--out=/data/file"],
    ["x", `--out=${volume}/file`],
  ],
  [
    ["ls", "/elsewhere", "relative", "/"],
    ["ls", "/elsewhere", "relative", "/"],
  ],
  [
    ["sh", "-c", "ls /data"],
    ["sh", "-c", "ls /data"],
  ],
  [
    ["tar", "-xmf", "-", "-C", "/data"],
    ["tar", "-xmf", "-", "-C", volume],
  ],
])("%j runs as %j", (argv, expected) => {
  expect(realArguments(argv, root)).toEqual(expected);
});

test("an archive for a copy has the names that were asked for", () => {
  expect(realArguments(["tar", "cf", "-", "/data/file"], root)).toEqual([
    "tar",
    "--absolute-names",
    `--transform=flags=rSh;s,^${volume.replace(/[.,]/g, "\\$&")}/file,data/file,`,
    "-cf",
    "-",
    `${volume}/file`,
  ]);
});
