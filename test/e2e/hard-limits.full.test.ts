/**
 * Hard limits of Revisions (`containerConcurrency`) with several gateways that end in turn under load, counted inside the
 * Function. In one process: packages/gateway/src/admission.test.ts.
 */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Answer } from "../support/calls.ts";
import { ask, clients, Member, seen, startLimited } from "../support/limited.ts";
import { pause, Platform } from "../support/platform.ts";
import { untilTrue } from "../support/until-true.ts";

const platform = new Platform();
beforeAll(() => startLimited(platform), 120_000);
afterAll(() => platform.remove(), 60_000);

const members: Member[] = [];
const member = () => Member.start(platform, members);
afterEach(async () => {
  await Promise.all(members.splice(0).map((each) => each.end("SIGKILL")));
  await platform.k("delete lease serverless-gateway-admission --ignore-not-found");
});

test("a gateway that is killed with requests under way does not let its successor start others", async () => {
  const alive = [await member(), await member()];
  expect((await ask(alive[0]!)).status).toBe(200);
  // Until the second one has been written down as knowing everything.
  await untilTrue(
    "a witness",
    async () =>
      /witnesses\\?":\[\\?"/.test(
        await platform.k("get lease serverless-gateway-admission -o json"),
      ),
    10_000,
  );
  const begin = performance.now();
  const lost = ask(alive[0]!, "?ms=6000").catch(() => undefined);
  await pause(500);
  await alive[0]!.end("SIGKILL");
  await lost;
  let answer: Answer | undefined;
  await untilTrue(
    "an answer of the successor's",
    async () => (answer = await ask(alive[1]!)).status === 200,
    60_000,
  );
  // Its Lease, and the Revision's 10 s from then on.
  expect(performance.now() - begin).toBeGreaterThan(10_000);
  expect(answer?.body).toBe("done");
  expect((await seen(alive[1]!)).most).toBe(1);
});

test("three gateways keep the limit together while each of them ends and others join", async () => {
  const alive = [await member(), await member(), await member()];
  let isOver = false;
  const running = clients(
    () => alive,
    () => isOver,
  );
  for (const signal of ["SIGTERM", "SIGTERM", "SIGTERM"] as const) {
    await pause(2_000);
    // The first one admits.
    const gone = alive.shift()!;
    await gone.end(signal);
    alive.push(await member());
  }
  await pause(2_000);
  isOver = true;
  const answered = await running;
  const { most, all } = await seen(alive[0]!);
  expect(most).toBe(1);
  expect(all).toBeGreaterThanOrEqual(answered);
  expect(answered).toBeGreaterThan(100);
});

test("under load, one that admits is killed again and again: what clients repeat is answered", async () => {
  const alive = [await member(), await member()];
  let isOver = false;
  const running = clients(
    () => alive,
    () => isOver,
  );
  for (let round = 0; round < 2; round++) {
    await pause(3_000);
    await alive.shift()!.end("SIGKILL");
    alive.push(await member());
    await pause(12_000);
  }
  const before = (await seen(alive[0]!)).all;
  await untilTrue("others are answered", async () => (await seen(alive[0]!)).all > before, 30_000);
  isOver = true;
  await running;
  expect((await seen(alive[0]!)).most).toBe(1);
});
