import { expect, test } from "vitest";
import { lineDiff } from "./line-diff.ts";

test("equal texts have no differences", () => {
  expect(lineDiff("a\nb", "a\nb")).toEqual([]);
});

test("what is gone and what is new is marked, with what is around it", () => {
  const before = "1\n2\n3\n4\n5\n6\n7\n8\n9";
  const after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10";
  expect(lineDiff(before, after, 1)).toEqual([
    "  4",
    "- 5",
    "+ five",
    "  6",
    "  ...",
    "  9",
    "+ 10",
  ]);
});

test("lines in between that are the same stay", () => {
  expect(lineDiff("a\nb\nc", "x\nb\ny", 0)).toEqual(["- a", "+ x", "  ...", "- c", "+ y"]);
});
