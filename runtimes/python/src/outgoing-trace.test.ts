/** Clause 9.2: what a handler sends continues the trace of its call. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installPackages, missingPython, PythonRuntime } from "./testing.ts";

const packages = missingPython ? undefined : installPackages("requests");
const trace = "0af7651916cd43dd8448eb211c80319c";
const caller = "b7ad6b7169203331";

/** Answers with the headers that it was sent. */
let echo: Server;
let runtime: PythonRuntime;

beforeAll(async () => {
  if (missingPython) return;
  echo = createServer((request, response) => response.end(JSON.stringify(request.headers)));
  echo.listen(0, "127.0.0.1");
  await once(echo, "listening");
  const url = `http://127.0.0.1:${(echo.address() as AddressInfo).port}/`;
  const code = `
import http.client, json, urllib.request

def by_urllib():
    return urllib.request.urlopen("${url}").read()

def by_http_client():
    connection = http.client.HTTPConnection("${url.slice(7, -1)}")
    connection.request("POST", "/", b"body")
    return connection.getresponse().read()

def by_requests():
    import requests
    return requests.post("${url}", json={}).content

def by_session():
    import requests
    with requests.Session() as session:
        session.get("${url}")
        return session.get("${url}").content

def by_urllib3():
    import urllib3
    return urllib3.PoolManager().request("GET", "${url}").data

def by_instrumented():
    from opentelemetry.instrumentation.requests import RequestsInstrumentor
    RequestsInstrumentor().instrument()
    return by_requests()

def main(event, context):
    return json.loads(globals()[event["extensions"]["request"].path[1:]]())
`;
  runtime = await PythonRuntime.start(code, { PYTHONPATH: packages ?? "" });
}, 60_000);

afterAll(async () => {
  await runtime?.stop();
  echo?.close();
});

const send = async (client: string, headers: Record<string, string>) =>
  (await runtime.json(`/by_${client}`, { headers })) as IncomingHttpHeaders;

describe.skipIf(missingPython)("requests of a handler", () => {
  test.each([
    ["traceparent", { traceparent: `00-${trace}-${caller}-01` }, "1"],
    [
      "traceparent of a trace that is not recorded",
      { traceparent: `00-${trace}-${caller}-00` },
      "0",
    ],
    ["b3", { b3: `${trace}-${caller}-1` }, "1"],
    ["x-b3-*", { "x-b3-traceid": trace, "x-b3-spanid": caller, "x-b3-sampled": "0" }, "0"],
  ])("continue the trace of %s", async (_name, headers, sampled) => {
    const sent = await send("urllib", headers);
    expect(sent).toMatchObject({ "x-b3-traceid": trace, "x-b3-sampled": sampled });
    expect(sent["traceparent"]).toBe(`00-${trace}-${String(sent["x-b3-spanid"])}-0${sampled}`);
    expect(sent["x-b3-spanid"]).not.toBe(caller);
  });

  test.each([
    ["without headers", {}],
    ["with a decision alone", { "x-b3-sampled": "1" }],
    ["with a broken traceparent", { traceparent: `00-${"0".repeat(32)}-${caller}-01` }],
  ])("begin one of a call %s", async (_name, headers) => {
    const sent = await send("urllib", headers);
    expect(sent["traceparent"]).toMatch(/^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01$/);
    expect(sent["traceparent"]).toContain(sent["x-b3-traceid"]);
  });

  test("carry what other vendors have to say", async () => {
    const headers = {
      traceparent: `00-${trace}-${caller}-01`,
      tracestate: "a=b",
      baggage: "who=me",
    };
    expect(await send("urllib", headers)).toMatchObject({ tracestate: "a=b", baggage: "who=me" });
  });

  const continues = async (client: string) => {
    const sent = await send(client, { traceparent: `00-${trace}-${caller}-01` });
    expect(sent["traceparent"]).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
  };

  test.each(["urllib", "http_client", "instrumented"])("by %s", continues);
  test.skipIf(!packages).each(["requests", "session", "urllib3"])(
    "by %s, if pip can install it",
    continues,
  );
});
