/** Hard limits of Revisions with several gateways that end in turn under load; counted inside the Function. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { clients, Member, seen, startLimited } from "../support/limited.ts";
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
}, 120_000);

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
}, 180_000);
