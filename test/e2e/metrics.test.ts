/** What the platform tells scrapers and probes, and that the dashboard file asks for nothing else. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { functionManifest, Platform, root } from "../support/platform.ts";

const platform = new Platform();
let texts: { controller: string; gateway: string; runtime: string };

const read = async (url: string) => {
  const response = await fetch(url);
  return { status: response.status, text: await response.text() };
};

beforeAll(async () => {
  await platform.start();
  await platform.k(
    "apply -f -",
    functionManifest("hello", "module.exports = { main: () => 'hi' }"),
  );
  await platform.callUntil("hello.default", ({ status }) => status === 200);
  await platform.k("wait --for=condition=Running function/hello --timeout=60s");
  const { metrics, gatewayMetrics } = platform.endpoints;
  // A Function's metrics are for scrapers inside: not for those who come through the gateway.
  const pod =
    "-l serverless.kyma-project.io/function-name=hello,serverless.kyma-project.io/resource=deployment";
  const address = await platform.k(`get pods ${pod} -o jsonpath={.items[0].status.podIP}`);
  texts = {
    controller: (await read(`${metrics}/metrics`)).text,
    gateway: (await read(`${gatewayMetrics}/metrics`)).text,
    runtime: (await read(`http://${address}:8080/metrics`)).text,
  };
});
afterAll(() => platform.remove());

test("health and readiness of controllers and gateway", async () => {
  const { metrics, gatewayMetrics } = platform.endpoints;
  for (const address of [metrics, gatewayMetrics]) {
    for (const page of ["healthz", "readyz"])
      expect((await read(`${address}/${page}`)).status, `${address}/${page}`).toBe(200);
  }
});

test("a Function that was built, started and called shows in all of them", () => {
  const labels = `name="hello",namespace="default",type="inline",runtime="nodejs24"`;
  for (const state of ["configured", "built", "running"])
    expect(texts.controller).toContain(`function_${state}_status_duration_millisecond{${labels}}`);
  expect(texts.controller).toMatch(/rest_client_requests_total\{method="PATCH",code="200"\} \d/);
  expect(texts.controller).toMatch(/workqueue_adds_total\{name="functions"\} \d/);
  expect(texts.gateway).toContain('function="hello",code="200"');
  expect(texts.runtime).toMatch(/function_calls_total [1-9]/);
});

test("every metric that the Grafana dashboard asks for is there", () => {
  const file = path.join(root, "deploy/grafana/spry.json");
  const { panels } = JSON.parse(readFileSync(file, "utf8")) as {
    panels: { title: string; targets?: { expr: string }[] }[];
  };
  const known = Object.values(texts).flatMap((text) =>
    [...text.matchAll(/^# TYPE (\S+) (\S+)/gm)].flatMap(([, name = "", type]) =>
      type === "histogram" ? [`${name}_bucket`, `${name}_count`, `${name}_sum`] : [name],
    ),
  );
  const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  const asked = expressions.flatMap((expr) => expr.match(/\b[a-z]+(?:_[a-z]+)+\b/g) ?? []);
  const functionsOfPromQl = ["histogram_quantile"];
  const unknown = asked.filter((name) => ![...known, ...functionsOfPromQl].includes(name));
  expect(asked.length).toBeGreaterThan(20);
  expect(unknown).toEqual([]);
});
