import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { rotate } from "./log-files.ts";

const most = 10;
const line = (letter: string) => letter.repeat(11);

test("a file that has grown begins anew for those who write to it, and three before it stay", () => {
  const file = path.join(mkdtempSync(path.join(tmpdir(), "logs-")), "spry.log");
  const writer = openSync(file, "a");
  for (const letter of ["a", "b", "c", "d", "e"]) {
    writeSync(writer, line(letter));
    rotate(file, most);
  }
  writeSync(writer, "f");
  closeSync(writer);
  const contents = ["", ".1", ".2", ".3"].map((age) => readFileSync(file + age, "utf8"));
  expect(contents).toEqual(["f", line("e"), line("d"), line("c")]);
  expect(existsSync(`${file}.4`)).toBe(false);
});

test("a file that is small, or missing, stays as it is", () => {
  const file = path.join(mkdtempSync(path.join(tmpdir(), "logs-")), "gateway.log");
  rotate(file, most);
  const writer = openSync(file, "a");
  writeSync(writer, "x".repeat(most));
  closeSync(writer);
  rotate(file, most);
  expect(readFileSync(file, "utf8")).toHaveLength(most);
  expect(existsSync(`${file}.1`)).toBe(false);
});

test("where a predecessor cannot be moved, nothing is lost", () => {
  const file = path.join(mkdtempSync(path.join(tmpdir(), "logs-")), "spry.log");
  const writer = openSync(file, "a");
  writeSync(writer, line("a"));
  closeSync(writer);
  for (const age of [1, 2, 3]) mkdirSync(`${file}.${age}/inside`, { recursive: true });
  expect(() => rotate(file, most)).toThrow();
  expect(readFileSync(file, "utf8")).toBe(line("a"));
});
