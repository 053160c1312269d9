import { expect, test } from "vitest";
import { inGrowingBatches } from "./growing-batches.ts";

test.each([
  { name: "all succeed", bad: [], tried: 10, done: 10 },
  { name: "the first fails", bad: [0], tried: 1, done: 0 },
  { name: "the second batch fails in part", bad: [2], tried: 3, done: 2 },
  { name: "the last fails", bad: [9], tried: 10, done: 9 },
])("of ten, $name: $tried are tried, $done done", async ({ bad, tried, done }) => {
  const attempted: number[] = [];
  const result = await inGrowingBatches([...Array.from({ length: 10 }).keys()], (item) => {
    attempted.push(item);
    return bad.includes(item) ? Promise.reject(new Error("no")) : Promise.resolve();
  });
  expect(attempted).toHaveLength(tried);
  expect(result.done).toBe(done);
  expect(result.failure !== undefined).toBe(bad.length > 0);
});
