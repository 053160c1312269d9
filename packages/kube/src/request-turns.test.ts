import { setImmediate as nextRound } from "node:timers/promises";
import { expect, test } from "vitest";
import { requestTurn } from "./request-turns.ts";

/** A request that works for so many milliseconds when its turn comes, partly after a promise has resolved, and then notes its name. */
async function answer(owner: string, workMs: number, log: string[]): Promise<void> {
  await requestTurn(owner);
  work(workMs / 2);
  await Promise.resolve();
  work(workMs / 2);
  log.push(owner);
}

function work(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

test("a request that comes by itself begins at once, and so do those after it while the round is short", async () => {
  await nextRound();
  expect(["anna", "anna", "ben"].map((owner) => requestTurn(owner))).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test("requests of one client that come at once leave rounds to the event loop", async () => {
  await nextRound();
  const log: string[] = [];
  const answered: number[] = [];
  const requests = Array.from({ length: 40 }, () => answer("noisy", 2, log));
  const rounds = (async () => {
    while (log.length < 40) {
      await nextRound();
      answered.push(log.length);
    }
  })();
  await Promise.all(requests);
  await rounds;
  const ofRound = answered.map((count, round) => count - (answered[round - 1] ?? 0));
  // Eight begin at once; later rounds have a slice of 5 ms each, and the request that exceeds it is the last of its round.
  expect(Math.max(...ofRound)).toBeLessThanOrEqual(8 + 3);
  expect(Math.max(...ofRound.slice(2))).toBeLessThanOrEqual(3);
});

test("another client waits for one slice, and not for all that wait", async () => {
  await nextRound();
  const log: string[] = [];
  const noisy = Array.from({ length: 100 }, () => answer("noisy", 2, log));
  await nextRound();
  const before = log.length;
  await answer("anna", 1, log);
  expect(log.indexOf("anna") - before).toBeLessThanOrEqual(3);
  await Promise.all(noisy);
});

test("those who wait have their turns one after the other, each client's in the order of their arrival", async () => {
  await nextRound();
  const order: string[] = [];
  const ask = async (owner: string, name: string) => {
    await requestTurn(owner);
    work(3);
    order.push(name);
  };
  work(6);
  await requestTurn("first");
  work(6);
  await Promise.all([
    ask("a", "a1"),
    ask("a", "a2"),
    ask("a", "a3"),
    ask("b", "b1"),
    ask("c", "c1"),
  ]);
  expect(order).toEqual(["a1", "b1", "c1", "a2", "a3"]);
});
