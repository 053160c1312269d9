import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { createLogger } from "./logger.ts";

test("a level that is set later holds for children that were made before", () => {
  const dir = mkdtempSync(path.join(tmpdir(), "logger-"));
  try {
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
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
