import { expect, test } from "vitest";
import { MemoryBudget } from "./memory-budget.ts";

/** How much an owner gets, byte by byte. */
function fill(budget: MemoryBudget, owner: string): number {
  let bytes = 0;
  while (budget.take(owner, 1)) bytes++;
  return bytes;
}

test("an owner gets no more than it leaves to others", () => {
  const budget = new MemoryBudget(120);
  expect([fill(budget, "a/a"), fill(budget, "b/b"), fill(budget, "c/c")]).toEqual([60, 30, 15]);
  expect(budget.take("a/a", 1)).toBe(false);
  expect(budget.take("d/d", 7)).toBe(true);
});

test("what is given back is there again", () => {
  const budget = new MemoryBudget(120);
  for (let round = 0; round < 3; round++) {
    expect(budget.take("a/a", 61)).toBe(false);
    expect(budget.take("a/a", 60)).toBe(true);
    budget.give("a/a", 60);
  }
});
