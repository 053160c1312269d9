import { expect, test } from "vitest";
import { nameFrom, nameProblem, originalName } from "./directory-name.ts";

test.each([
  ["My_App", "my-app"],
  ["shop.v2", "shop-v2"],
  ["a  b", "a-b"],
  ["-x-", "x"],
  ["@scope", "scope"],
  ["x".repeat(63), "x".repeat(63)],
])("%s loses nothing as %s", (directory, name) => {
  expect(nameFrom(`/somewhere/${directory}`)).toBe(name);
  expect(nameProblem(`/somewhere/${directory}`)).toBeUndefined();
});

test.each([
  "天気",
  "時計",
  "größe",
  "grüße",
  "gro\u0308ße",
  "2048",
  "1st",
  "x".repeat(64),
  "İx",
  "٣",
])("%s would lose letters or digits", (directory) => {
  const problem = nameProblem(`/somewhere/${directory}`);
  expect(problem?.message).toContain(directory.normalize("NFC"));
  expect(problem?.wayOut).toMatch(/`name: [a-z][-a-z0-9]*`/);
});

test("letters and their marks are one name, however a file system has them", () => {
  expect(originalName("/x/gro\u0308ße")).toBe("größe");
});
