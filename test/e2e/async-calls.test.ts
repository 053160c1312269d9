/** Calls that may wait, and schedules, on a whole platform. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import { type AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call } from "../support/calls.ts";
import { Platform } from "../support/platform.ts";
import { impatientServing } from "../support/serving-settings.ts";
import { untilTrue } from "../support/until-true.ts";

const platform = new Platform();
const patienceMs = 60_000;
const until = (what: string, ask: () => Promise<boolean>) => untilTrue(what, ask, patienceMs);

const worker = `
let failures = 0;
module.exports = { main: async (event) => {
  const { request, response } = event.extensions;
  const { query, method } = request;
  if (query.sleep) await new Promise((resolve) => setTimeout(resolve, Number(query.sleep)));
  if (query.failures && failures++ < Number(query.failures)) throw new Error("not yet");
  return { method, data: event.data, query, schedule: request.headers["x-schedule-name"], call: request.headers["x-call-id"], prefer: request.headers.prefer };
} };`;
const functionOf = (name: string, rest: object = {}) => ({
  apiVersion: "serverless.kyma-project.io/v1alpha2",
  kind: "Function",
  metadata: { name },
  spec: { runtime: "nodejs24", source: { inline: { source: worker } }, ...rest },
});

/** What was sent to the callback's address. */
const callbacks: { headers: IncomingHttpHeaders; body: string }[] = [];
const receiver = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
  request.on("end", () => {
    callbacks.push({ headers: request.headers, body });
    response.end();
  });
});

interface Report {
  id: string;
  state: string;
  attempts: number;
  response?: { status: number; body: string };
}

async function submit(
  path: string,
  headers: Record<string, string> = {},
  host = "worker.default.localhost",
) {
  const { port } = platform.gateway;
  const response = await request(port, host, path, { prefer: "respond-async", ...headers });
  const { location = "" } = response.headers;
  return { ...response, location };
}

function request(
  port: string,
  host: string,
  path: string,
  headers: Record<string, string>,
  method = "POST",
) {
  return call(port, host, {
    path,
    headers,
    method,
    ...(method === "POST" ? { body: `{"n":1}` } : {}),
  });
}

async function report(location: string): Promise<Report> {
  const { host, pathname } = new URL(location);
  const { body } = await request(platform.gateway.port, host, pathname, {}, "GET");
  return JSON.parse(body) as Report;
}

async function ended(location: string): Promise<Report> {
  await until("the call has ended", async () =>
    ["succeeded", "failed", "cancelled"].includes((await report(location)).state),
  );
  return report(location);
}

async function spry(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await platform.spry(args);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
}

beforeAll(async () => {
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  await platform.start();
  const items = [
    functionOf("worker"),
    functionOf("nightly", {
      scaleConfig: { minReplicas: 0, maxReplicas: 1 },
      annotations: { "autoscaling.knative.dev/window": "6s" },
      schedules: [
        { name: "report", cron: "0 3 * * *", timeZone: "Europe/Berlin", payload: `{"n":2}` },
      ],
    }),
  ];
  await platform.k("apply -f -", JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  await platform.k("apply -f -", impatientServing);
  await platform.k("wait --for=condition=Running function/worker function/nightly --timeout=150s");
}, 240_000);
afterAll(async () => {
  await platform.remove();
  receiver.close();
});

test("a call that prefers not to be waited for is accepted, made, and its result kept", async () => {
  const { status, location, headers } = await submit("/?a=1", {
    "content-type": "application/json",
  });
  expect(status).toBe(202);
  expect(headers["preference-applied"]).toBe("respond-async");
  const { state, response, attempts, id } = await ended(location);
  expect({ state, attempts, status: response?.status }).toEqual({
    state: "succeeded",
    attempts: 1,
    status: 200,
  });
  const seen = JSON.parse(response?.body ?? "") as Record<string, unknown>;
  expect(seen).toMatchObject({ method: "POST", data: { n: 1 }, query: { a: "1" } });
  expect(seen["prefer"]).toBeUndefined();
  expect(id.endsWith(String(seen["call"]))).toBe(true);
});

test("OpenFaaS' way, with a callback", async () => {
  const { port } = receiver.address() as AddressInfo;
  const { status, headers } = await submit(
    "/async-function/worker.default?b=2",
    { prefer: "x", "x-callback-url": `http://127.0.0.1:${port}/done` },
    "localhost",
  );
  expect(status).toBe(202);
  await until("the result has been sent", async () => callbacks.length > 0);
  expect(callbacks[0]?.headers).toMatchObject({
    "x-call-id": headers["x-call-id"],
    "x-function-name": "worker",
    "x-function-status": "200",
    "content-type": expect.stringContaining("application/json"),
  });
  expect(JSON.parse(callbacks[0]?.body ?? "")).toMatchObject({ query: { b: "2" } });
});

test("a Function may be called by its path on the gateway's own host, too", async () => {
  const { status, location } = await submit("/fn/default/worker/?c=3", {}, "localhost");
  expect(status).toBe(202);
  const { body } = await request(
    platform.gateway.port,
    "localhost",
    new URL(location).pathname,
    {},
    "GET",
  );
  expect(JSON.parse(body)).toMatchObject({ attempts: expect.any(Number) });
});

test("a call that fails is retried as often as it asks for", async () => {
  const { location } = await submit("/?failures=1", { "x-async-retries": "2" });
  expect(await ended(location)).toMatchObject({ state: "succeeded", attempts: 2 });
  const failing = await submit("/?failures=1000", { "x-async-retries": "0" });
  expect(await ended(failing.location)).toMatchObject({
    state: "failed",
    attempts: 1,
    response: { status: 500 },
  });
});

test("one key is one call", async () => {
  const key = { "idempotency-key": "order-1" };
  const [first, second] = await Promise.all([submit("/", key), submit("/", key)]);
  expect(first.location).toBe(second.location);
  expect((await submit("/", { "idempotency-key": "order-2" })).location).not.toBe(first.location);
});

test("a call that is delayed can be cancelled", async () => {
  const { location } = await submit("/", { "x-async-delay": "3600" });
  const { id, state } = await report(location);
  expect(state).toBe("waiting");
  await spry("async", "cancel", id);
  expect((await report(location)).state).toBe("cancelled");
  expect(await spry("async", "list")).toMatch(/worker +cancelled/);
  expect(JSON.parse(await spry("async", "get", id))).toMatchObject({ state: "cancelled" });
});

test("what cannot be a call is refused with a sentence", async () => {
  for (const [headers, message] of [
    [{ "x-callback-url": "ftp://a/" }, "x-callback-url: not a valid http or https URL"],
    [
      { "x-callback-url": "http://a.other.svc.cluster.local/" },
      "x-callback-url: Services of the Function's own namespace default only",
    ],
    [{ "x-async-delay": "soon" }, "x-async-delay: must be a whole number from 0 to 604800"],
  ] as [Record<string, string>, string][]) {
    const { status, body } = await submit("/", headers);
    expect({ status, body }).toEqual({ status: 400, body: `${message}\n` });
  }
  expect((await submit("/", {}, "nothing.default.localhost")).status).toBe(404);
  const unknown = "/.well-known/spry/calls/default.000000000-00000000000000000000000000000000";
  const host = "worker.default.localhost";
  expect((await request(platform.gateway.port, host, unknown, {}, "GET")).status).toBe(404);
});

test("a schedule is run by hand, and starts a Function that has no Pod", async () => {
  await until("the Function has no Pod", async () => {
    const pods = "get pods -l serving.knative.dev/service=nightly -o name";
    return (await platform.k(pods)).trim() === "";
  });
  const id = (await spry("schedule", "run", "nightly", "report")).trim();
  await until("the run has ended", async () => {
    const { state } = JSON.parse(await spry("async", "get", id)) as { state: string };
    return state === "succeeded";
  });
  const run = JSON.parse(await spry("async", "get", id)) as Report & { schedule: object };
  expect(run.schedule).toMatchObject({ name: "report" });
  expect(JSON.parse(run.response?.body ?? "")).toMatchObject({
    method: "POST",
    schedule: "report",
    data: { n: 2 },
  });
});
