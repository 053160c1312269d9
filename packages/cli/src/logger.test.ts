import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLogger } from "./logger.ts";

let dir: string;
beforeEach(() => (dir = mkdtempSync(path.join(tmpdir(), "logger-"))));
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test("a level that is set later holds for children that were made before", () => {
  const file = path.join(dir, "log");
  const log = createLogger({ name: "test", file });
  const grandchild = log.child({ a: 1 }).child({ b: 2 });
  grandchild.debug({}, "unheard");
  log.setLevel("debug");
  grandchild.debug({}, "heard");
  log.setLevel("error");
  log.child({ c: 3 }).info({}, "unheard again");
  const lines = readFileSync(file, "utf8").trim().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { msg: string }).msg)).toEqual(["heard"]);
});

test("the format may be changed while it runs, for children too", () => {
  const file = path.join(dir, "log");
  const log = createLogger({ name: "test", file });
  const child = log.child({ room: "hall" });
  child.info({}, "as JSON");
  log.setFormat("console");
  child.warn({ count: 2 }, 'said "so"\nand so');
  log.setFormat(undefined);
  child.info({}, "as JSON again");
  const [first = "", second, third = ""] = readFileSync(file, "utf8").trim().split("\n");
  expect(JSON.parse(first)).toMatchObject({ room: "hall", msg: "as JSON" });
  expect(second).toMatch(
    /^[-\dT:.]+Z\tWARN\ttest\tsaid "so"\\nand so\t\{"room":"hall","count":2\}$/,
  );
  expect(JSON.parse(third)).toMatchObject({ msg: "as JSON again" });
});

test.skipIf(!existsSync("/dev/full"))("a full disk does not make logging fail", () => {
  const log = createLogger({ name: "test", file: "/dev/full" });
  for (let i = 0; i < 100; i++) log.error({ text: "x".repeat(10_000) }, "nothing of this fits");
});
