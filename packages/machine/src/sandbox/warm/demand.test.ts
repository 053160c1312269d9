import { expect, test } from "vitest";
import { Demand } from "./demand.ts";

const minute = 60_000;

test.each<[what: string, starts: [key: string, at: number][], now: number, wanted: object]>([
  ["nothing was started", [], 0, {}],
  ["one start", [["a", 0]], 9 * minute, { a: 1 }],
  ["one start, ten minutes later", [["a", 0]], 10 * minute, {}],
  [
    "several within the last minute",
    [
      ["a", 0],
      ["a", 1],
      ["a", 2],
    ],
    minute - 1,
    { a: 3 },
  ],
  [
    "several, and then a quiet minute",
    [
      ["a", 0],
      ["a", 1],
      ["a", 2],
    ],
    2 * minute,
    { a: 1 },
  ],
  ["more than may wait", Array.from({ length: 9 }, (_, at) => ["a", at]), 10, { a: 4 }],
  [
    "each kind once before one of them twice",
    [
      ["a", 0],
      ["a", 1],
      ["a", 2],
      ["a", 3],
      ["b", 4],
    ],
    5,
    { a: 3, b: 1 },
  ],
  [
    "more kinds than may wait: those started last",
    ["a", "b", "c", "d", "e"].map((key, at) => [key, at]),
    5,
    { b: 1, c: 1, d: 1, e: 1 },
  ],
])("%s", (_what, starts, now, wanted) => {
  const demand = new Demand(4);
  for (const [key, at] of starts) demand.add(key, at);
  expect(Object.fromEntries(demand.wanted(now))).toEqual(wanted);
});
