import { expect, test } from "vitest";
import { TrafficSplit } from "./traffic-split.ts";

const splitOf = (...weights: number[]) => {
  const [first = 0, ...rest] = weights;
  return new TrafficSplit([
    { target: 0, weight: first },
    ...rest.map((weight, i) => ({ target: i + 1, weight })),
  ]);
};
const count = (split: TrafficSplit<number>, requests: number) => {
  const counts: Record<number, number> = {};
  for (let i = 0; i < requests; i++) {
    const target = split.next();
    counts[target] = (counts[target] ?? 0) + 1;
  }
  return counts;
};

test.each([
  [[100], 10, { 0: 10 }],
  [[50, 50], 200, { 0: 100, 1: 100 }],
  [[90, 10], 100, { 0: 90, 1: 10 }],
  [[1, 99], 100, { 0: 1, 1: 99 }],
  [[0, 100], 50, { 1: 50 }],
  [[33, 33, 34, 0], 1_000, { 0: 330, 1: 330, 2: 340 }],
  [[0, 0], 5, { 0: 5 }],
])("shares of %j over %d requests are exact: %j", (weights, requests, expected) => {
  expect(count(splitOf(...weights), requests)).toEqual(expected);
});

test("a small share comes evenly, not at the end", () => {
  const split = splitOf(80, 20);
  for (let i = 0; i < 10; i++) expect(count(split, 5)).toEqual({ 0: 4, 1: 1 });
});
