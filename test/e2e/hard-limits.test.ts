/**
 * Hard limits of Revisions (`containerConcurrency`) with several gateways, counted inside the Function. Gateways that end in turn under
 * load: hard-limits.full.test.ts; in one process: packages/gateway/src/admission.test.ts.
 */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Answer } from "../support/calls.ts";
import { ask, Member, seen, startLimited } from "../support/limited.ts";
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
}, 120_000);
