import { expect, test } from "vitest";
import { errorLines } from "./print-error.ts";

test.each([
  ["a sentence alone", "it failed", undefined, ["error: it failed"]],
  ["and a way out", "it failed", "try that", ["error: it failed", "       try that"]],
  [
    "details of another program",
    "pip failed:\nNo matching distribution\n\n  from versions: none\n",
    "change it\nor that",
    [
      "error: pip failed:",
      "  No matching distribution",
      "",
      "    from versions: none",
      "       change it",
      "       or that",
    ],
  ],
  [
    "details that are indented already",
    "not valid:\n  - spec.env: wrong\n  - spec.source: wrong",
    undefined,
    ["error: not valid:", "  - spec.env: wrong", "  - spec.source: wrong"],
  ],
])("one layout for all errors: %s", (_, message, wayOut, lines) => {
  expect(errorLines(message, wayOut)).toEqual(lines);
});

test("on a narrow terminal the sentence and the way out are broken below their beginning", () => {
  expect(errorLines("one two three four", "five six seven", 18)).toEqual([
    "error: one two",
    "       three four",
    "       five six",
    "       seven",
  ]);
  expect(
    errorLines("it failed:\none two three four\n  at here, and further", undefined, 18),
  ).toEqual(["error: it failed:", "  one two three", "  four", "    at here, and further"]);
});
