import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readText } from "./text-file.ts";

let dir = "";
beforeAll(() => {
  dir = mkdtempSync(path.join(tmpdir(), "text-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

function file(content: string | Buffer): string {
  const name = path.join(dir, "a.txt");
  writeFileSync(name, content);
  return name;
}

test("a byte order mark does not belong to the text", () => {
  expect(readText(file("\uFEFFä=1"))).toBe("ä=1");
});

const utf16 = Buffer.from("\uFEFFA=1", "utf16le");
test.each<[string, () => string, string]>([
  ["UTF-16", () => file(utf16), "a.txt is UTF-16"],
  ["another encoding", () => file(Buffer.from("ä", "latin1")), "a.txt is not UTF-8 text"],
  ["a directory", () => dir, "is a directory, not a file"],
  ["nothing", () => path.join(dir, "b"), "does not exist"],
  ["too much", () => file("x".repeat(1024 * 1024 + 1)), "larger than 1 MiB"],
])("%s is refused with its name", (_name, of, message) => {
  expect(() => readText(of())).toThrow(message);
});

test.skipIf(process.getuid?.() === 0)("a file that may not be read is named", () => {
  const name = file("A=1");
  chmodSync(name, 0);
  expect(() => readText(name)).toThrow("a.txt cannot be read");
  chmodSync(name, 0o600);
});
