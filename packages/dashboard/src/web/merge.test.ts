/** Changes of two users, and texts with line ends of their own. */
import { array, assert, constantFrom, property, string } from "fast-check";
import { describe, expect, test } from "vitest";
import { withEndsOf, withPlainEnds } from "./state/line-ends.ts";
import { mergeThreeWays, pathKey, shownPath } from "./state/merge.ts";

const variable = (name: string, value: string) => ({ name, value });
const lines = (...all: string[]) => all.join("\n");

describe("changes of two users become one", () => {
  test.each<[string, base: object, mine: object, theirs: object, merged: object]>([
    ["of different fields", { a: 1, b: 1 }, { a: 2, b: 1 }, { a: 1, b: 2 }, { a: 2, b: 2 }],
    ["of the same value", { a: 1 }, { a: 2 }, { a: 2 }, { a: 2 }],
    ["of a field that one has removed", { a: 1, b: 1 }, { b: 1 }, { a: 1, b: 2 }, { b: 2 }],
    [
      "of variables that both have added",
      { env: [variable("A", "1")] },
      { env: [variable("A", "1"), variable("MINE", "2")] },
      { env: [variable("A", "1"), variable("THEIRS", "3")] },
      { env: [variable("A", "1"), variable("MINE", "2"), variable("THEIRS", "3")] },
    ],
    [
      "of variables where none were",
      {},
      { env: [variable("MINE", "2")] },
      { env: [variable("THEIRS", "3")] },
      { env: [variable("THEIRS", "3"), variable("MINE", "2")] },
    ],
    [
      "of variables that one has removed and the other has not touched",
      { env: [variable("A", "1"), variable("B", "1")] },
      { env: [variable("B", "2")] },
      { env: [variable("A", "1"), variable("B", "1"), variable("C", "1")] },
      { env: [variable("B", "2"), variable("C", "1")] },
    ],
    [
      "of variables that I have put into another order",
      { env: [variable("A", "1"), variable("B", "1")] },
      { env: [variable("B", "1"), variable("A", "1")] },
      { env: [variable("A", "1"), variable("B", "2")] },
      { env: [variable("B", "2"), variable("A", "1")] },
    ],
    [
      "of lines of the code",
      { source: lines("a", "b", "c", "d", "e") },
      { source: lines("a1", "b", "c", "d", "e") },
      { source: lines("a", "b", "c", "d", "e2", "f") },
      { source: lines("a1", "b", "c", "d", "e2", "f") },
    ],
    [
      "of the same line in the same way",
      { source: lines("a", "b", "c", "d", "e") },
      { source: lines("a", "b", "C", "d", "e", "f") },
      { source: lines("x", "b", "C", "d", "e") },
      { source: lines("x", "b", "C", "d", "e", "f") },
    ],
    [
      "of labels with dots",
      { "a.b/c": "1" },
      { "a.b/c": "2" },
      { "a.b/c": "1", d: "1" },
      { "a.b/c": "2", d: "1" },
    ],
  ])("%s", (_, base, mine, theirs, merged) => {
    expect(mergeThreeWays(base, mine, theirs)).toEqual({ merged, clashes: [] });
  });

  test.each<[string, base: object, mine: object, theirs: object, paths: string[]]>([
    ["the same field", { a: { b: 1 } }, { a: { b: 2 } }, { a: { b: 3 } }, ["a.b"]],
    ["the same line", { s: "a\nb\nc" }, { s: "a\nB\nc" }, { s: "a\nX\nc" }, ["s"]],
    ["lines next to each other", { s: "a\nb\nc" }, { s: "A\nb\nc" }, { s: "a\nB\nc" }, ["s"]],
    ["both at the end", { s: "a" }, { s: "a\nmine" }, { s: "a\ntheirs" }, ["s"]],
    [
      "a variable's value",
      { env: [variable("A", "1")] },
      { env: [variable("A", "2"), variable("B", "1")] },
      { env: [variable("A", "3")] },
      ["env[A].value"],
    ],
    [
      "a variable that one has removed",
      { env: [variable("A", "1")] },
      { env: [] },
      { env: [variable("A", "3")] },
      ["env[A]"],
    ],
    ["what one has taken away", { a: { b: 1 } }, { a: { b: 2 } }, {}, ["a"]],
    ["a list without names", { a: [1] }, { a: [1, 2] }, { a: [1, 3] }, ["a"]],
    [
      "a list that has a name twice",
      { env: [variable("A", "1")] },
      { env: [variable("A", "1"), variable("A", "2")] },
      { env: [variable("A", "3")] },
      ["env"],
    ],
  ])("except %s, of which one chooses", (_, base, mine, theirs, paths) => {
    const { merged, clashes } = mergeThreeWays(base, mine, theirs);
    expect(clashes.map(({ path }) => shownPath(path))).toEqual(paths);
    // With mine at first; with theirs where it was chosen.
    const taken = new Set(clashes.map(({ path }) => pathKey(path)));
    const chosen = mergeThreeWays(base, mine, theirs, taken).merged;
    expect(mergeThreeWays(base, merged, mine).clashes).toEqual([]);
    expect(chosen).not.toEqual(merged);
  });

  test("whatever they are: what only one has changed is never lost", () => {
    const env = array(constantFrom("A", "B", "C", "D"), { maxLength: 4 }).map((names) =>
      [...new Set(names)].map((name) => variable(name, name)),
    );
    assert(
      property(env, env, env, (base, mine, theirs) => {
        const { merged, clashes } = mergeThreeWays({ env: base }, { env: mine }, { env: theirs });
        const has = (list: { name: string }[], name: string) =>
          list.some((each) => each.name === name);
        expect(clashes).toEqual([]);
        for (const name of ["A", "B", "C", "D"]) {
          const [was, my, their] = [has(base, name), has(mine, name), has(theirs, name)];
          expect(has(merged.env, name)).toBe(my === was ? their : my);
        }
      }),
    );
  });
});

describe("line ends", () => {
  test.each([
    ["a\r\nb\r\n", "a\nb\nc\n", "a\r\nb\r\nc\r\n"],
    ["a\r\nb\r\n", "a\nx\nb\n", "a\r\nx\r\nb\r\n"],
    ["a\r\nb\nc\r\n", "a\nb\nc\nd\n", "a\r\nb\nc\r\nd\r\n"],
    ["a\rb\rc", "a\nX\nc", "a\rX\rc"],
    ["a\nb", "a\nb\nc", "a\nb\nc"],
    ["a\r\nb", "", ""],
    ["", "a\n", "a\n"],
  ])("of %j stay when %j is typed", (before, typed, after) => {
    expect(withEndsOf(before, typed)).toBe(after);
  });

  test("of a text that is as it was are as they were", () => {
    assert(
      property(array(constantFrom("a", "b", "\r", "\n", "\r\n", "")), string(), (parts, other) => {
        const text = parts.join("");
        expect(withEndsOf(text, withPlainEnds(text))).toBe(text);
        expect(withPlainEnds(withEndsOf(text, withPlainEnds(other)))).toBe(withPlainEnds(other));
      }),
    );
  });
});
