import { expect, test } from "vitest";
import { GatewayMetrics } from "./gateway-metrics.ts";

test("status codes that HTTP does not name are counted by their class", () => {
  const metrics = new GatewayMetrics();
  for (let status = 200; status < 1000; status++) metrics.observe("shop/dice", status, 0.1);
  const codes = [...metrics.render().matchAll(/_count\{[^}]*code="(\w+)"/g)].map(
    ([, code]) => code,
  );
  expect(codes).toEqual(expect.arrayContaining(["200", "404", "503", "2xx", "4xx", "9xx"]));
  expect(new Set(codes).size).toBeLessThan(80);
  expect(new Set(codes).size).toBe(codes.length);
});
