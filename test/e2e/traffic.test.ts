/** Shares of the traffic: revisions from another way of serving, under load, and what is refused. */
import { describe, expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { Load } from "../support/load.ts";
import { functionManifest } from "../support/platform.ts";
import { untilTrue } from "../support/until-true.ts";

const platform = enginePlatform();

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;
const apply = (name: string, text: string, spec: Record<string, unknown> = {}) =>
  platform.k("apply -f -", functionManifest(name, answering(text), spec));
const answers = (host: string, text: string) =>
  platform.callUntil(`${host}.default`, ({ status, body }) => status === 200 && body === text);
const messageOf = (name: string) =>
  platform.k(`get function ${name} -o jsonpath={.status.conditions[?(@.type=="Running")].message}`);

/** What answers, and how often. */
async function shares(host: string, requests: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (let at = 0; at < requests; at++) {
    const { status, body } = await platform.call(`${host}.default`);
    const what = status === 200 ? body : `${status} ${body}`;
    counts[what] = (counts[what] ?? 0) + 1;
  }
  return counts;
}

async function spry(...args: string[]) {
  const result = await platform.spry(args);
  expect(result.code, result.stderr).toBe(0);
  return result;
}

describe("a Function with three revisions as a Deployment", () => {
  test("gets its first revision back next to the newest one, with a host of its own", async () => {
    for (const text of ["one", "two", "three"]) {
      await apply("dice", text);
      await answers("dice", text);
    }
    await spry("traffic", "dice", "1=50,latest=50", "--tag", "1=old");
    await platform.k("wait --for=condition=Running function/dice --timeout=60s");
    await answers("dice", "one");
    expect(await shares("dice", 20)).toEqual({ one: 10, three: 10 });
    expect(await shares("old-dice", 3)).toEqual({ one: 3 });
  });

  test.each(["50", "1=50,50=50"])("a revision that does not exist gets none: %s", async (text) => {
    const refused = await platform.spry(["traffic", "dice", text]);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("Function dice has no version 50; it has "),
    });
    await answers("old-dice", "one");
  });

  test("moves shares under load without losing a request", async () => {
    const load = new Load(platform.gateway, "dice.default.localhost");
    load.start(100);
    await spry("traffic", "dice", "1=90,latest=10", "--tag", "latest=next");
    await answers("next-dice", "three");
    expect(await shares("next-dice", 3)).toEqual({ three: 3 });
    await spry("traffic", "dice", "2=100");
    // The load hears of it with its next request.
    await expect.poll(() => load.seen).toEqual(new Set(["one", "two", "three"]));
    await load.stop();
    expect(load.failures).toEqual([]);
  });

  test("is a Deployment again when the latest gets all", async () => {
    const load = new Load(platform.gateway, "dice.default.localhost");
    load.start(100);
    await spry("traffic", "dice", "latest=100");
    await untilTrue(
      "no Knative Service",
      async () => !(await platform.k("get ksvc -o name")).includes("/dice"),
      60_000,
    );
    await answers("dice", "three");
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(await platform.k("get deployment dice -o jsonpath={.status.readyReplicas}")).toBe("1");
  });
});

describe("what cannot be", () => {
  const share = (share: object) => ({ percent: 50, ...share });
  test.each<[string, unknown, RegExp]>([
    ["does not add up", [share({ latest: true })], /Percentages of traffic should add up to 100/],
    [
      "has a tag twice",
      [share({ latest: true, tag: "a" }), share({ revision: 1, tag: "a" })],
      /Tags of traffic should be unique/,
    ],
    ["names nothing", [{ percent: 100 }], /revision.*latest/],
    ["names both", [{ percent: 100, latest: true, revision: 1 }], /revision.*latest/],
  ])("traffic that %s is refused", async (_, traffic, message) => {
    const manifest = functionManifest("odd", answering("odd"), { traffic });
    const { code, stderr } = await platform.kubectl(["apply", "-f", "-"], manifest);
    expect(code).toBe(1);
    expect(stderr).toMatch(message);
  });

  test("a revision that the history does not have is reported, and what served goes on", async () => {
    await apply("gap", "here");
    await answers("gap", "here");
    await apply("gap", "here", { traffic: [{ revision: 77, percent: 100 }] });
    await untilTrue(
      "the message",
      async () => (await messageOf("gap")).includes("gap-00077"),
      60_000,
    );
    expect(await shares("gap", 3)).toEqual({ here: 3 });
    await apply("gap", "here", { traffic: [{ latest: true, percent: 100 }] });
    await platform.k("wait --for=condition=Running function/gap --timeout=60s");
    expect(await shares("gap", 3)).toEqual({ here: 3 });
  });

  test("an hour for a request is permitted on demand, too", async () => {
    await apply("slow", "slow", {
      timeoutSeconds: 3600,
      scaleConfig: { minReplicas: 0, maxReplicas: 1 },
    });
    await platform.k("wait --for=condition=Running function/slow --timeout=60s");
    expect(await shares("slow", 1)).toEqual({ slow: 1 });
  });
});

test("a Deployment's replicas may be 0: requests are answered at once, with the reason", async () => {
  await apply("rest", "awake");
  await answers("rest", "awake");
  await platform.k("scale function rest --replicas=0");
  const { body } = await platform.callUntil("rest.default", ({ status }) => status === 503);
  const asleep = await platform.callUntil("rest.default", (each) =>
    each.body.includes("scaled to zero"),
  );
  expect(asleep.body, body).toContain("spec.replicas is 0");
  await platform.k("scale function rest --replicas=1");
  await answers("rest", "awake");
});
