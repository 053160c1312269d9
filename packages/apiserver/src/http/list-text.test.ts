import { expect, test } from "vitest";
import { ListText } from "./list-text.ts";

test.each<[string, string[]]>([
  ["no item", []],
  ["one", ['{"a":1}']],
  ["several", ['{"a":1}', '"b"', "null"]],
  ["text beyond ASCII, one byte a character in memory", ['"é"', '"ü"']],
  ["text beyond Latin", ['"日本"', '"🙂"', '"a"']],
])("the bytes of a list are those of its text: %s", (_, items) => {
  const list = new ListText('{"kind":"L","items":[', items, "]}");
  const expected = { kind: "L", items: items.map((item) => JSON.parse(item) as unknown) };
  expect(JSON.parse(list.toString())).toEqual(expected);
  expect(list.toBytes().toString()).toBe(list.toString());
});
