import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
