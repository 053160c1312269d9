import { expect, test } from "vitest";
import { type Condition, getCondition, isConditionTrue, setCondition } from "./conditions.ts";
import { ManualClock } from "./manual-clock.ts";

test("the transition time moves only when the status does", async () => {
  const clock = new ManualClock();
  const first = setCondition(undefined, { type: "Ready", status: "False", reason: "A" }, clock);
  await clock.advance(5000);
  const second = setCondition(first, { type: "Ready", status: "False", reason: "B" }, clock);
  expect(getCondition(second, "Ready")).toEqual({
    type: "Ready",
    status: "False",
    reason: "B",
    lastTransitionTime: "2026-01-01T00:00:00Z",
  });
  const third = setCondition(second, { type: "Ready", status: "True" }, clock);
  expect(getCondition(third, "Ready")?.lastTransitionTime).toBe("2026-01-01T00:00:05Z");
  expect(isConditionTrue(third, "Ready")).toBe(true);
  expect(isConditionTrue(second, "Ready")).toBe(false);
});

test("other conditions keep their place, and the argument stays as it was", () => {
  const before: Condition[] = [
    { type: "A", status: "True" },
    { type: "B", status: "True" },
  ];
  const after = setCondition(before, { type: "A", status: "False" });
  expect(after.map(({ type, status }) => `${type}=${status}`)).toEqual(["A=False", "B=True"]);
  expect(before[0]).toEqual({ type: "A", status: "True" });
});
