/** The trace that a Function's own requests carry, in every version of Node.js: `http`, `https` and `fetch`. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { type AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { nodeRuntimesOf, startRuntime } from "./runtimes.ts";

/** Answers with the headers that it was sent. */
const echo = createServer((request, response) => response.end(JSON.stringify(request.headers)));
let port = 0;
beforeAll(async () => {
  await once(echo.listen(0, "127.0.0.1"), "listening");
  ({ port } = echo.address() as AddressInfo);
});
afterAll(() => echo.close());

const handler = (how: string, port: number) => `
const http = require("node:http");
const url = "http://127.0.0.1:${port}/";
const sent = (request) => new Promise((resolve, reject) => {
  request.on("error", reject).on("response", async (response) => {
    let text = "";
    for await (const chunk of response) text += chunk;
    resolve(JSON.parse(text));
  });
});
const ended = (request) => { const answer = sent(request); request.end(); return answer; };
const ways = {
  "http.get": () => sent(http.get(url)),
  "http.request": () => ended(http.request(url, { method: "POST", headers: { "X-Own": "1" } })),
  "http.ClientRequest": () => ended(new http.ClientRequest(url)),
  "a request with a body": () => { const request = http.request(url, { method: "PUT" }); request.write("x"); return ended(request); },
  fetch: () => fetch(url).then((response) => response.json()),
  "a list of headers": () => ended(http.request(url, { headers: ["X-Own", "1", "Host", "x"] })),
  "a request that expects 100": () => ended(http.request(url, { method: "POST", headers: { expect: "100-continue", "x-own": "1" } })),
  "a trace of its own": () => ended(http.request(url, { headers: { traceparent: "mine" } })),
};
const call = ways[${JSON.stringify(how)}];
// With Node.js 26 a handler gets a request and a response.
module.exports = { main: async (_, response) => response.json ? response.json(await call()) : call() };
`;

const inTrace = {
  traceparent: /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/,
  "x-b3-traceid": /^[0-9a-f]{32}$/,
  "x-b3-spanid": /^[0-9a-f]{16}$/,
  "x-b3-sampled": /^1$/,
};
const rows: [how: string, carried: Record<string, RegExp>][] = [
  ["http.get", inTrace],
  ["http.request", { ...inTrace, "x-own": /^1$/ }],
  ["http.ClientRequest", inTrace],
  ["a request with a body", inTrace],
  ["fetch", inTrace],
  // Their headers are written when they are made: they are sent as they are.
  ["a list of headers", { "x-own": /^1$/ }],
  ["a request that expects 100", { "x-own": /^1$/ }],
  ["a trace of its own", { ...inTrace, traceparent: /^mine$/ }],
];

describe.each(nodeRuntimesOf([20, 22, 24, 26]))("$name", (runtime) => {
  test.each(rows)("%s", async (how, carried) => {
    const running = await startRuntime(runtime, handler(how, port), {});
    onTestFinished(() => running.stop());
    const ask = () => fetch(running.url, { headers: { "x-b3-sampled": "1" } });
    const response = await ask();
    expect(response.status).toBe(200);
    const seen = (await response.json()) as IncomingHttpHeaders;
    const expected = Object.entries(carried).map(([name, value]) => [
      name,
      expect.stringMatching(value),
    ]);
    expect(seen).toMatchObject(Object.fromEntries(expected));
    expect((await ask()).status, "the process goes on").toBe(200);
  });
});
