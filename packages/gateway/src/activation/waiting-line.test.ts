import { expect, test } from "vitest";
import { type Backend } from "../attempt/backend.ts";
import { type Seeker, WaitingLine } from "./waiting-line.ts";

const seeker = (firstFailureAt = 0): Seeker => ({ arrivedAt: 1, firstFailureAt });
const place = {} as Backend;

test("those that a Pod has failed come first, all others in the order of their arrival", async () => {
  const line = new WaitingLine(10, 1_000);
  const order: string[] = [];
  const wait = (name: string, each: Seeker) => {
    expect(line.enter(each, 1)).toBeUndefined();
    void line.wait(each).then(() => order.push(name));
  };
  wait("first", seeker());
  wait("second", seeker());
  wait("failed", seeker(5));
  wait("failed later", seeker(6));
  for (let i = 0; i < 4; i++) line.serve(place);
  await Promise.resolve();
  expect(order).toEqual(["failed", "failed later", "first", "second"]);
  expect(line.size).toBe(0);
});

test("one whose body is still on its way is counted, and gets no place yet", async () => {
  const line = new WaitingLine(1, 1_000);
  const early = seeker();
  line.enter(early, 10);
  expect(line.hasReady).toBe(false);
  line.serve(place);
  expect(line.enter(seeker(), 10)).toBe("1 requests");
  const waiting = line.wait(early);
  line.serve(place);
  expect(await waiting).toBe(place);
});

test("it is bounded by number and by memory, and entering twice counts once", () => {
  const line = new WaitingLine(10_000, 1_000_000);
  const all = Array.from({ length: 10_000 }, () => seeker());
  for (const each of all) expect(line.enter(each, 50)).toBeUndefined();
  expect(line.enter(all[0] as Seeker, 50)).toBeUndefined();
  expect(line.enter(seeker(), 50)).toBe("10000 requests");
  for (const each of all.slice(0, 5_000)) line.leave(each, undefined);
  expect(line.enter(seeker(), 750_001)).toBe("1000000 bytes");
  expect(line.enter(seeker(), 750_000)).toBeUndefined();
});
