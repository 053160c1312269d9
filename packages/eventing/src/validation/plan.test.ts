import { expect, test } from "vitest";
import { planOf } from "./plan.ts";

test("without settings an event outlasts a sink that is down for an hour, however the pauses are spread", () => {
  const sink = { namespace: "shop", name: "orders", port: 80, path: "/" };
  const spec = { sink: "http://orders.shop", source: "shop", types: ["order.created.v1"] };
  const { maxAttempts, backoffMs, maxBackoffMs, jitter } = planOf({ metadata: {}, spec }, sink);
  let leastMs = 0;
  for (let attempt = 1; attempt < maxAttempts; attempt++)
    leastMs += Math.min(backoffMs * 2 ** (attempt - 1), maxBackoffMs) * (1 - jitter);
  expect(leastMs).toBeGreaterThan(3_600_000);
});
