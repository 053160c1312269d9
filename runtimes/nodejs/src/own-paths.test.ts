/** The runtime's own paths, and handlers that have paths of their own. */
import { describe, expect, test } from "vitest";
import { type RunningFunction, send, startFunction } from "./testing/running-function.ts";

const programs = {
  fetch: `export default { fetch: (request) => new Response(new URL(request.url).pathname) };`,
  application: `import http from "node:http";
    http.createServer((request, response) => response.end(request.url)).listen(1234);`,
};
const own = ["/healthz", "/metrics", "/favicon.ico"];
const probe = { "user-agent": "kube-probe/1.36" };
const scrape = { "x-prometheus-scrape-timeout-seconds": "10" };
const outside = { "x-forwarded-for": "192.0.2.1" };
const bodyOf = async (fn: RunningFunction, path: string, headers = {}) =>
  (await send(`${fn.url}${path}`, { headers })).body;

describe.each(Object.entries(programs))("%s", (_, code) => {
  test("answers its own paths; probes and scrapers are answered by the runtime", async () => {
    const fn = await startFunction({ "handler.mjs": code });
    for (const path of own) expect(await bodyOf(fn, path)).toBe(path);
    expect(await bodyOf(fn, "/healthz", probe)).toBe("OK");
    expect(await bodyOf(fn, "/metrics", scrape)).toContain("function_calls_total 3");
    const accept = { accept: "application/openmetrics-text;version=1.0.0,text/plain;q=0.5" };
    expect(await bodyOf(fn, "/metrics", accept)).toContain("function_calls_total");
    expect(await bodyOf(fn, "/metrics", { ...scrape, ...outside })).toBe("/metrics");
  });
});

test("main: who comes through a gateway reads no metrics", async () => {
  const code = "exports.main = ({ extensions: { request } }) => request.path;";
  const fn = await startFunction({ "handler.js": code });
  expect(await bodyOf(fn, "/metrics")).toContain("function_calls_total");
  expect(await bodyOf(fn, "/metrics", outside)).toBe("/metrics");
  expect(await bodyOf(fn, "/healthz", outside)).toBe("OK");
});
