import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { EncodingTurns } from "./encoding-turns.ts";

/** Encodes items of `length` characters, one after the other, and notes its name whenever it got a turn. */
async function encode(owner: string, length: number, count: number, log: string[]): Promise<void> {
  const turns = new EncodingTurns(owner);
  for (let item = 0; item < count; item++) {
    const turn = turns.before(length);
    if (turn) {
      await turn;
      log.push(owner);
    }
    const end = performance.now() + length / 20_000;
    while (performance.now() < end);
  }
}

test("small answers need no turn, however many others wait", async () => {
  const log: string[] = [];
  const busy = Array.from({ length: 50 }, () => encode("noisy", 100_000, 2, log));
  const turns = new EncodingTurns("anna");
  expect(turns.before(1000)).toBeUndefined();
  expect(turns.before(15_000)).toBeUndefined();
  expect(turns.before(1000)).toBeInstanceOf(Promise);
  await Promise.all(busy);
});

test("of large answers one is encoded at a time, and timers and input come between two slices", async () => {
  const log: string[] = [];
  let rounds = 0;
  const round = setInterval(() => rounds++, 1);
  await Promise.all(Array.from({ length: 30 }, () => encode("noisy", 100_000, 2, log)));
  clearInterval(round);
  expect(log.length).toBeGreaterThanOrEqual(30);
  expect(rounds).toBeGreaterThanOrEqual(log.length - 1);
});

test("another owner waits for one slice, and not for all answers of the first", async () => {
  const log: string[] = [];
  const busy = Array.from({ length: 20 }, () => encode("noisy", 100_000, 2, log));
  await pause(1);
  const before = log.length;
  await encode("anna", 100_000, 1, log);
  expect(log.indexOf("anna") - before).toBeLessThanOrEqual(1);
  await Promise.all(busy);
});
