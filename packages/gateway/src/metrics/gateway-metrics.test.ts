import { expect, test } from "vitest";
import { GatewayMetrics } from "./gateway-metrics.ts";

const everything = { hasRoute: () => true, hasRevision: () => true };
const rowsOf = (text: string) => text.split("\n").filter((line) => line.includes("_count{"));

test("status codes that HTTP does not name are counted by their class", () => {
  const metrics = new GatewayMetrics();
  for (let status = 200; status < 1000; status++) metrics.observe("shop/dice", status, 0.1);
  const codes = [...metrics.render(everything).matchAll(/_count\{[^}]*code="(\w+)"/g)].map(
    ([, code]) => code,
  );
  expect(codes).toEqual(expect.arrayContaining(["200", "404", "503", "2xx", "4xx", "9xx"]));
  expect(new Set(codes).size).toBeLessThan(80);
  expect(new Set(codes).size).toBe(codes.length);
});

test("what has been deleted has no rows, and a request that ends later leaves none", () => {
  const metrics = new GatewayMetrics();
  for (const key of ["shop/dice", "shop/gone"]) {
    metrics.observe(key, 200, 0.1);
    for (const number of [1, 2]) metrics.coldStarted(key, `${key}-0000${number}`, 1);
  }
  const existing = {
    hasRoute: (key: string) => key === "shop/dice",
    hasRevision: (key: string) => key === "shop/dice-00002",
  };
  const left = [
    'spry_gateway_request_duration_seconds_count{namespace="shop",function="dice",code="200"} 1',
    'spry_gateway_cold_start_seconds_count{namespace="shop",function="dice",revision="dice-00002"} 1',
  ];
  expect(rowsOf(metrics.render(existing))).toEqual(left);
  metrics.observe("shop/gone", 200, 0.1);
  expect(rowsOf(metrics.render(existing))).toEqual(left);
});

test("a namespace with many Functions leaves rows to others", () => {
  const metrics = new GatewayMetrics();
  for (let index = 0; index < 12_000; index++) metrics.observe(`greedy/${index}`, 200, 0.1);
  metrics.observe("modest/dice", 200, 0.1);
  const rows = rowsOf(metrics.render(everything));
  expect(rows.filter((row) => row.includes('"greedy"')).length).toBe(5_000);
  expect(rows.some((row) => row.includes('namespace="modest",function="dice"'))).toBe(true);
  expect(rows.some((row) => row.includes('namespace="",function=""'))).toBe(true);
});
