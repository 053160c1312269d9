import { mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { prepareRunFiles } from "./run-files.ts";

test("three earlier runs have a log, and only the last of them a long one", () => {
  const pod = temporaryDirectory();
  const directory = path.join(pod, "containers", "main");
  mkdirSync(directory, { recursive: true });
  const long = "x".repeat(1024 * 1024 + 5);
  for (let run = 0; run < 5; run++) {
    for (const name of [`${run}.log`, `${run}.log.1`]) {
      writeFileSync(path.join(directory, name), long);
      utimesSync(path.join(directory, name), 1000, 1000);
    }
  }
  prepareRunFiles(pod, "main", 5);
  expect(readdirSync(directory).toSorted()).toEqual([
    "2.log",
    "3.log",
    "4.log",
    "4.log.1",
    "termination-log",
  ]);
  const stats = (name: string) => statSync(path.join(directory, name));
  expect(stats("2.log")).toMatchObject({ size: 1024 * 1024, mtimeMs: 1_000_000 });
  expect(stats("4.log").size).toBe(long.length);
});
