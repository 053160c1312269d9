/** What the platform tells scrapers and probes, and that the dashboard file asks for nothing else. */
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { load } from "js-yaml";
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
  // A Function's metrics are for scrapers inside: not for those who come through the gateway.
  const pod =
    "-l serverless.kyma-project.io/function-name=hello,serverless.kyma-project.io/resource=deployment";
  const address = await platform.k(`get pods ${pod} -o jsonpath={.items[0].status.podIP}`);
  texts = {
    controller: await platform.metrics(),
    gateway: await platform.metrics("gatewayMetrics"),
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

test("metrics of controllers and gateway are for clients with the token of the data directory", async () => {
  const { metrics, gatewayMetrics } = platform.endpoints;
  const file = path.join(platform.dataDir, "metrics.token");
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const counts = readFileSync(path.join(platform.dataDir, "counts-token"), "utf8");
  for (const address of [metrics, gatewayMetrics])
    for (const authorization of [undefined, "Bearer ", "Bearer wrong", `Bearer ${counts}`]) {
      const headers = authorization === undefined ? {} : { authorization };
      const response = await fetch(`${address}/metrics`, { headers });
      const answer = { status: response.status, asks: response.headers.get("www-authenticate") };
      expect(answer, `${address} ${authorization}`).toEqual({ status: 401, asks: "Bearer" });
      expect(await response.text()).not.toContain("# TYPE");
    }
});

test("status prints with what Prometheus reads them", async () => {
  const { stdout } = await platform.spry([
    "status",
    "--scrape-config",
    "--data-dir",
    platform.dataDir,
  ]);
  const { scrape_configs: jobs } = load(stdout) as {
    scrape_configs: {
      authorization: { credentials_file: string };
      static_configs: { targets: string[] }[];
    }[];
  };
  const texts = jobs.map(async ({ authorization, static_configs: [first] }) => {
    const token = readFileSync(authorization.credentials_file, "utf8");
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(`http://${first?.targets[0]}/metrics`, { headers });
    return response.text();
  });
  expect(
    (await Promise.all(texts)).map((text) => /workqueue|spry_gateway/.exec(text)?.[0]),
  ).toEqual(["workqueue", "spry_gateway"]);
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
