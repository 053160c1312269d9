import { expect, test } from "vitest";
import { clockJumps, ManualClock, onClockSet, TokenBucket, WorkQueue } from "./index.ts";

const hourMs = 3_600_000;

test("a clock that is set is noticed within five seconds, with by how much, and one that is adjusted is not", async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const seen: number[] = [];
  onClockSet(clock, (byMs) => seen.push(byMs), stop.signal);
  await clock.advance(10_000);
  clock.set(20);
  await clock.advance(10_000);
  expect(seen).toEqual([]);
  clock.set(-hourMs);
  await clock.advance(5_000);
  clock.set(hourMs);
  await clock.advance(5_000);
  expect(seen).toEqual([-hourMs, hourMs]);
  stop.abort();
  expect(clock.pending).toBe(0);
});

test("the time that has passed is not set", () => {
  const clock = new ManualClock();
  const setBy = clockJumps(clock);
  const before = clock.elapsed();
  clock.set(-hourMs);
  expect([clock.elapsed() - before, setBy(), setBy()]).toEqual([0, -hourMs, 0]);
});

test.each([-hourMs, hourMs])(
  "what waits in a work queue waits no longer for a clock that is set by %i ms",
  async (byMs) => {
    const clock = new ManualClock();
    const queue = new WorkQueue({ clock });
    queue.addAfter("a", 10_000);
    clock.set(byMs);
    // Of two pauses the sooner counts, whatever the clock says.
    queue.addAfter("a", 5_000);
    const taken = queue.take();
    await clock.advance(5_000);
    expect(queue.length).toBe(0);
    expect(await taken).toBe("a");
    const bucket = new TokenBucket({ perSecond: 1, burst: 1, clock });
    expect(bucket.tryTake()).toBe(true);
    clock.set(byMs);
    await clock.advance(1_000);
    expect([bucket.tryTake(), bucket.tryTake()]).toEqual([true, false]);
  },
);
