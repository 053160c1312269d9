/** A sink that is down for an hour, on a clock of the test's own. */
import { setImmediate as turn } from "node:timers/promises";
import { ManualClock } from "@spry/kube";
import { expect, test } from "vitest";
import { serve, World } from "./testing/world.ts";

const hourMs = 3_600_000;
const maxInFlight = 10;

test("a sink that is down for an hour: pauses double up to a minute, and then it gets every event, once", async () => {
  const clock = new ManualClock(Date.now());
  // Pauses of informers have fractions of milliseconds; the real time has none.
  const now = () => Math.floor(clock.now());
  const world = await World.create(
    {},
    {
      now,
      elapsed: () => clock.elapsed(),
      after: (ms, then) => clock.after(ms, then),
    },
  );
  const begin = now();
  let open = 0;
  let mostOpen = 0;
  let isUp = false;
  /** When each event was attempted, and which were handled. */
  const attempts = new Map<string, number[]>();
  const handled: string[] = [];
  const port = await serve((request, response) => {
    const id = String(request.headers["ce-id"]);
    attempts.set(id, [...(attempts.get(id) ?? []), now()]);
    mostOpen = Math.max(mostOpen, ++open);
    if (isUp) handled.push(id);
    request.resume().once("end", () => {
      open--;
      response.writeHead(isUp ? 200 : 503).end();
    });
  });
  const delivery = { backoffSeconds: 1, maxBackoffSeconds: 60, jitterPercent: 0 };
  const config = { maxInFlightMessages: String(maxInFlight) };
  await world.subscribe("sink", port, { delivery, config });
  const consumer = await world.eventing.queue()?.find("subscription/default/sink");
  const made = () => [...attempts.values()].reduce((sum, times) => sum + times.length, 0);

  /** Everything that is due has been attempted, and has come back. */
  const settled = async () => {
    for (let calm = 0, before = -1; calm < 3;) {
      for (let n = 0; n < 10; n++) await turn();
      const isCalm = (await consumer?.state())?.inFlight === 0 && made() === before;
      calm = isCalm ? calm + 1 : 0;
      before = made();
    }
  };
  /** From timer to timer, with real time for the requests in between. */
  const pass = async (ms: number) => {
    const end = clock.now() + ms;
    while (clock.now() < end) {
      const next = Math.min(end - clock.now(), ...clock.due.filter((due) => due > 0));
      await clock.advance(next);
      await settled();
    }
  };

  const ids = Array.from({ length: 24 }, (_, n) => String(n));
  for (const id of ids.slice(0, 12)) await world.publish("sink.v1", id);
  await settled();
  const timers = clock.pending;
  await pass(hourMs / 2);
  for (const id of ids.slice(12)) await world.publish("sink.v1", id);
  await settled();
  await pass(hourMs / 2);

  // 1 + 2 + 4 + 8 + 16 + 32 s, then once a minute: no event is attempted in a loop.
  const pauses = (id: string) => {
    const times = attempts.get(id) ?? [];
    return times.slice(1).map((at, n) => Math.round((at - (times[n] ?? 0)) / 1_000));
  };
  const expected = (seconds: number) => {
    const all: number[] = [];
    for (let sum = 0; sum <= seconds; sum += all.at(-1) ?? 0)
      all.push(Math.min(2 ** all.length, 60));
    return all.slice(0, -1);
  };
  for (const id of ids) expect([id, pauses(id)]).toEqual([id, expected(+id < 12 ? 3_600 : 1_800)]);
  expect(mostOpen).toBeLessThanOrEqual(maxInFlight);
  // One timer for all that wait, however many they are.
  expect(clock.pending).toBeLessThanOrEqual(timers + 2);
  expect(await consumer?.state()).toMatchObject({ waiting: ids.length, dead: 0 });

  isUp = true;
  await pass(60_000);
  expect(handled.toSorted((a, b) => Number(a) - Number(b))).toEqual(ids);
  expect(await consumer?.state()).toMatchObject({ waiting: 0, dead: 0 });
  expect(now() - begin).toBeGreaterThanOrEqual(hourMs);
}, 60_000);
