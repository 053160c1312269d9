import { expect, test } from "vitest";
import { fittingTable } from "./table.ts";
import { shortened, wrapped } from "./terminal-width.ts";

test("long sentences are broken between words, rather after a semicolon; code is not", () => {
  const text = `error: version 2 of dice failed: no database; version 1 still serves
  throw new Error("a line of code that is longer than the terminal is wide");
       spry logs dice shows more`;
  expect(wrapped(text, 50, 7)).toBe(`error: version 2 of dice failed: no database;
       version 1 still serves
  throw new Error("a line of code that is longer than the terminal is wide");
       spry logs dice shows more`);
  expect(wrapped("one two three four", 9, 2)).toBe("one two\n  three\n  four");
  expect(wrapped("see https://a.example/very/long for more", 10, 2)).toBe(
    "see\n  https://a.example/very/long\n  for more",
  );
  expect(wrapped("not valid:\n  - spec.runtime: use one of these", 20)).toBe(
    "not valid:\n  - spec.runtime:\n    use one of these",
  );
  expect(wrapped(text, undefined, 7)).toBe(text);
});

test("a text is shortened to the room that there is", () => {
  expect(shortened("abcdef", 4)).toBe("abc…");
  expect(shortened("abcd", 4)).toBe("abcd");
});

test("a table leaves out columns that a terminal has no room for", () => {
  const table = (columns: number | undefined) =>
    fittingTable(["NAMESPACE", "NAME", "AGE"], [["default", "dice", "3s"]], {
      columns,
      optional: ["NAMESPACE", "AGE"],
    });
  expect(table(undefined)).toEqual(["NAMESPACE   NAME   AGE", "default     dice   3s"]);
  expect(table(12)).toEqual(["NAME   AGE", "dice   3s"]);
  expect(table(5)).toEqual(["NAME", "dice"]);
});
