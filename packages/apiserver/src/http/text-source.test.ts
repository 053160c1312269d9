import { expect, test } from "vitest";
import { ListText } from "./list-text.ts";
import { TextSource } from "./text-source.ts";

test.each([
  ["nothing", []],
  ["one text", ["abc"]],
  ["empty parts", ["", "ab", "", "c", ""]],
  ["long parts", ["a".repeat(1000), "b".repeat(37)]],
  ["characters of two halves", ["a😀😀😀b", "😀", "é😀"]],
])("%s comes out whole, however little is taken at once", (_, parts) => {
  for (const limit of [1, 2, 3, 7, 100_000]) {
    const source = new TextSource(parts);
    const taken: Uint8Array[] = [];
    for (let bytes = source.take(limit); bytes; bytes = source.take(limit)) taken.push(bytes);
    expect(Buffer.concat(taken).toString()).toBe(parts.join(""));
  }
});

test("the parts of a list are its text", () => {
  for (const items of [[], ["1"], ["1", "é"]]) {
    const list = new ListText("[", items, "]");
    expect([...list.parts()].join("")).toBe(list.toString());
    expect(list.byteLength()).toBe(list.toBytes().length);
  }
});
