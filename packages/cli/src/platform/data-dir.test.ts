import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDataDir } from "./data-dir.ts";

let dir = "";
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), "data-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

test("a data directory is used by one platform at a time", () => {
  const first = openDataDir(dir);
  expect(() => openDataDir(dir)).toThrow(/another Spry \(process \d+\) is running/);
  first.unlock();
  openDataDir(dir).unlock();
});

test("the lock of a process that is gone holds nobody up, also when its pid is used again", () => {
  writeFileSync(path.join(dir, "lock"), JSON.stringify({ pid: process.pid, startTime: "1" }));
  openDataDir(dir).unlock();
  writeFileSync(path.join(dir, "lock"), "no JSON");
  openDataDir(dir).unlock();
});

const isRoot = process.platform === "linux" && process.getuid?.() === 0;
const why = isRoot ? "" : " (skipped: mounting needs root on Linux)";

test.skipIf(!isRoot)(`a full and a read-only directory are named in one sentence${why}`, () => {
  const disk = path.join(dir, "disk");
  mkdirSync(disk);
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", disk]);
  try {
    const root = path.join(disk, "data");
    openDataDir(root).unlock();
    const { bavail, bsize } = statfsSync(disk);
    writeFileSync(path.join(disk, "filler"), Buffer.alloc(bavail * bsize));
    expect(() => openDataDir(root)).toThrow(`the data directory ${root} has no space left`);
    execFileSync("mount", ["-o", "remount,ro", disk]);
    expect(() => openDataDir(root)).toThrow(`the data directory ${root} is read-only`);
    expect(() => openDataDir(path.join(disk, "new"))).toThrow(/ is read-only$/);
  } finally {
    execFileSync("umount", ["-l", disk]);
  }
});

test("a directory with other files is not mixed with ours, and stays as it is", () => {
  writeFileSync(path.join(dir, "thesis.txt"), "");
  expect(() => openDataDir(dir)).toThrow(/holds other files \(thesis\.txt\) and no data of Spry$/);
  expect(existsSync(path.join(dir, "pki"))).toBe(false);
});

test("hidden files are no reason to refuse a directory", () => {
  writeFileSync(path.join(dir, ".gitignore"), "*");
  openDataDir(dir).unlock();
});

test("a file is not a data directory", () => {
  const file = path.join(dir, "file");
  writeFileSync(file, "");
  expect(() => openDataDir(file)).toThrow(`the data directory ${file} is not a directory`);
});

test("another user's directory is named in one sentence", () => {
  const root = path.join(dir, "theirs");
  openDataDir(root).unlock();
  // Root may write everywhere: this one is looked at by somebody who may not.
  const program = `
    import { openDataDir } from ${JSON.stringify(new URL("./data-dir.ts", import.meta.url).href)};
    if (${isRoot}) process.setuid(65534);
    try { openDataDir(${JSON.stringify(root)}); } catch (error) { console.log(error.name, error.message); }`;
  chmodSync(dir, 0o755);
  if (isRoot) chownSync(root, 12345, 12345);
  else chmodSync(root, 0o500);
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", program], {
    encoding: "utf8",
  });
  chmodSync(root, 0o700);
  expect(output.trim()).toBe(
    `UserError the data directory ${root} belongs to another user, or may not be written`,
  );
});

test.skipIf(process.platform !== "linux")(
  "a place where nothing can be created is named at once",
  () => {
    expect(() => openDataDir("/proc/x")).toThrow(
      /^the data directory \/proc\/x cannot be used: ENOENT/,
    );
  },
);
