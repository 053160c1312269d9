import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ManualClock } from "./manual-clock.ts";
import { TokenBucket } from "./token-bucket.ts";
import { WorkQueue } from "./work-queue.ts";

describe("a work queue", () => {
  test("hands a key that was added twice out once", async () => {
    const queue = new WorkQueue();
    queue.add("a");
    queue.add("a");
    queue.add("b");
    expect([await queue.take(), await queue.take(), queue.length]).toEqual(["a", "b", 0]);
  });

  test("hands a key that was added while worked on out again, but only afterwards", async () => {
    const queue = new WorkQueue();
    queue.add("a");
    await queue.take();
    queue.add("a");
    expect(queue.length).toBe(0);
    queue.done("a");
    expect(await queue.take()).toBe("a");
  });

  test("wakes a waiting taker, and all of them when it is closed", async () => {
    const queue = new WorkQueue();
    const takers = [queue.take(), queue.take(), queue.take()];
    queue.add("a");
    queue.close();
    expect(await Promise.all(takers)).toEqual(["a", undefined, undefined]);
    queue.add("b");
    expect(await queue.take()).toBeUndefined();
  });

  test("doubles the pause of a failing key up to the largest, until it is forgotten", () => {
    const queue = new WorkQueue({ clock: new ManualClock(), baseDelayMs: 5, maxDelayMs: 60 });
    const pauses = Array.from({ length: 6 }, () => queue.retry("a"));
    expect(pauses).toEqual([5, 10, 20, 40, 60, 60]);
    expect(queue.retry("b")).toBe(5);
    queue.forget("a");
    expect(queue.retry("a")).toBe(5);
  });

  test("of several pauses of one key keeps the soonest", async () => {
    const clock = new ManualClock();
    const queue = new WorkQueue({ clock });
    queue.addAfter("a", 100);
    queue.addAfter("a", 50);
    queue.addAfter("a", 200);
    await clock.advance(49);
    expect(queue.length).toBe(0);
    await clock.advance(1);
    expect([queue.length, clock.pending]).toEqual([1, 0]);
  });

  test("bounds the retries of all keys together", () => {
    const clock = new ManualClock();
    const rateLimit = new TokenBucket({ perSecond: 10, burst: 100, clock });
    const queue = new WorkQueue({ clock, rateLimit });
    const pauses = Array.from({ length: 110 }, (_, i) => queue.retry(`key-${i}`));
    expect(pauses.slice(0, 100)).toEqual(Array.from({ length: 100 }, () => 5));
    expect(pauses.slice(100)).toEqual([100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
  });
});

const step = fc.oneof(
  fc.record({ do: fc.constant("add"), key: fc.constantFrom("a", "b", "c") }),
  fc.record({ do: fc.constant("later"), key: fc.constantFrom("a", "b", "c") }),
  fc.record({ do: fc.constantFrom("take", "done", "wait"), key: fc.constant("") }),
);

test("whatever happens, no key is worked on twice at a time, and no addition is lost", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const clock = new ManualClock();
      const queue = new WorkQueue({ clock });
      const busy: string[] = [];
      /** Keys added and not yet taken since. */
      const owed = new Set<string>();
      const take = async () => {
        const key = await queue.take();
        if (key === undefined) return;
        expect(busy).not.toContain(key);
        busy.push(key);
        owed.delete(key);
      };
      for (const { do: action, key } of steps) {
        if (action === "add" || action === "later") owed.add(key);
        if (action === "add") queue.add(key);
        else if (action === "later") queue.addAfter(key, 10);
        else if (action === "wait") await clock.advance(10);
        else if (action === "take" && queue.length > 0) await take();
        else if (action === "done") queue.done(busy.shift() ?? "none");
      }
      for (const key of busy.splice(0)) queue.done(key);
      await clock.advance(10);
      while (queue.length > 0) {
        await take();
        queue.done(busy.pop() ?? "none");
      }
      expect([...owed]).toEqual([]);
    }),
  );
});
