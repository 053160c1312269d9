import { expect, test } from "vitest";
import { Breaks } from "./breaks.ts";

type Break = [address: string, at: number];

test.each<[string, Break[], { earlier: number; pauseMs: number }]>([
  ["the first", [["a", 0]], { earlier: 0, pauseMs: 0 }],
  [
    "of the same end",
    [
      ["a", 0],
      ["a", 99],
    ],
    { earlier: 0, pauseMs: 100 },
  ],
  [
    "of the same end for the third time",
    [
      ["a", 0],
      ["a", 1],
      ["a", 50],
    ],
    { earlier: 1, pauseMs: 0 },
  ],
  [
    "of another Pod",
    [
      ["a", 0],
      ["b", 1],
    ],
    { earlier: 1, pauseMs: 0 },
  ],
  [
    "of the Pod's next process",
    [
      ["a", 0],
      ["a", 100],
    ],
    { earlier: 1, pauseMs: 0 },
  ],
])("a broken connection: %s", (_, all, expected) => {
  const breaks = new Breaks();
  expect(all.map(([address, at]) => breaks.note(address, at)).at(-1)).toEqual(expected);
});
