import { expect, test } from "vitest";
import { PassLoop } from "./pass-loop.ts";

/** Microtasks, not time: what other promises have queued by then runs before. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await Promise.resolve();
}

test.each(Array.from({ length: 12 }, (_, at) => at))(
  "what changes %i turns after the beginning of a pass is seen by a pass",
  async (at) => {
    let state = "before";
    const seen: string[] = [];
    const loop = new PassLoop(async () => {
      const found = state;
      await turns(4);
      seen.push(found);
    });
    loop.wake();
    await turns(at);
    state = "after";
    loop.wake();
    await loop.settled();
    expect(seen.at(-1)).toBe("after");
  },
);

test("passes never overlap, also when one asks for the next before its first pause", async () => {
  let under = 0;
  let most = 0;
  let left = 3;
  const loop = new PassLoop(async () => {
    most = Math.max(most, ++under);
    if (left-- > 0) loop.wake();
    await turns(2);
    under--;
  });
  loop.wake();
  await loop.settled();
  expect({ most, left }).toEqual({ most: 1, left: -1 });
});

test("after its end no pass begins", async () => {
  let passes = 0;
  const loop = new PassLoop(async () => {
    passes++;
    await turns(2);
  });
  loop.wake();
  loop.wake();
  loop.end();
  loop.wake();
  await loop.settled();
  expect(passes).toBe(1);
});
