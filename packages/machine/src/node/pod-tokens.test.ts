import { createApiServer } from "@spry/apiserver";
import { type Clock, KubeClient, ManualClock, resources, systemClock } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { PodTokens } from "./pod-tokens.ts";

const namespace = "default";

test("a Pod's token is made anew before it expires, and kept until then", async () => {
  let now = Date.parse("2026-01-01T00:00:00Z");
  const clock: Clock = { ...systemClock, now: () => now };
  const server = await createApiServer({ dataDir: ":memory:", clock });
  onTestFinished(() => server.close());
  const client = new KubeClient(server.transport());
  const spec = { containers: [{ name: "main", image: "a" }] };
  const pod = await client.create(resources.pods, {
    metadata: { namespace, name: "p" },
    spec,
  });
  const tokens = new PodTokens(client, clock, pod);
  expect(tokens.msUntilRefresh).toBe(Number.POSITIVE_INFINITY);

  const first = await tokens.token({ expirationSeconds: 1000 });
  expect(tokens.msUntilRefresh).toBeGreaterThan(785_000);
  expect(tokens.msUntilRefresh).toBeLessThanOrEqual(800_000);
  now += 780_000;
  expect(await tokens.token({ expirationSeconds: 1000 })).toBe(first);
  now += 20_001;
  expect(tokens.msUntilRefresh).toBeLessThanOrEqual(0);
  const second = await tokens.token({ expirationSeconds: 1000 });
  expect(second).not.toBe(first);
  expect(await tokens.token({ audience: "vault" })).not.toBe(second);

  // No more are issued: the last one is used as long as it is good.
  await client.delete(resources.pods, { namespace, name: "p" }, { gracePeriodSeconds: 0 });
  now += 850_000;
  expect(await tokens.token({ expirationSeconds: 1000 })).toBe(second);
  expect(tokens.msUntilRefresh).toBeGreaterThan(0);
  now += 200_000;
  await expect(tokens.token({ expirationSeconds: 1000 })).rejects.toThrow('pods "p" not found');
});

test.each([-3_600_000, 3_600_000])(
  "a Pod's token is made anew in time when the clock is set by %i ms",
  async (byMs) => {
    const clock = new ManualClock();
    const server = await createApiServer({ dataDir: ":memory:", clock });
    onTestFinished(() => server.close());
    const client = new KubeClient(server.transport());
    const spec = { containers: [{ name: "main", image: "a" }] };
    const pod = await client.create(resources.pods, { metadata: { namespace, name: "p" }, spec });
    const tokens = new PodTokens(client, clock, pod);
    const first = await tokens.token({ expirationSeconds: 1000 });
    clock.set(byMs);
    expect(tokens.msUntilRefresh).toBeLessThanOrEqual(800_000);
    await clock.advance(800_001);
    expect(await tokens.token({ expirationSeconds: 1000 })).not.toBe(first);
  },
);
