import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "../testing/handler-rows.ts";
import { send, startFunction } from "../testing/running-function.ts";

const json = { "content-type": "application/json" };
const event = { "ce-id": "1", "ce-type": "made", "ce-source": "/me" };

const polyfills: [body: string, text: string][] = [
  ["new ReadableStream({ start(c) { c.enqueue(Buffer.from('web')); c.close(); } })", "web"],
  ["Readable.from(['no', 'de'])", "node"],
  ["Buffer.from('bytes')", "bytes"],
  ["'text'", "text"],
  ["null", ""],
  ["undefined", "asked"],
];

/** As itty-router makes them: whatever name it is asked for is a function that registers a route. */
const proxyRouter = `const router = () => ({
  __proto__: new Proxy({}, { get: (target, name, receiver) => () => receiver }),
  async fetch() { return new Response("routed"); },
});`;

const rows: Row[] = [
  {
    name: "fetch of a default export",
    code: `export default { async fetch(request, env, ctx) {
      return new Response([request.method, new URL(request.url).pathname, await request.text(), env.FUNC_NAME, ctx.runtime].join(" "),
        { status: 201, headers: [["x-a", "1"], ["set-cookie", "a=1"], ["set-cookie", "b=2"]] }); } };`,
    request: { method: "PUT", body: "text" },
    status: 201,
    body: "PUT /a/b text hello nodejs24",
    headers: { "x-a": "1", "set-cookie": ["a=1", "b=2"] },
  },
  {
    name: "fetch of an object with state, in CommonJS",
    code: `class App { name = "app"; fetch(request) { return Response.json({ name: this.name }); } } module.exports = new App();`,
    body: '{"name":"app"}',
    headers: { "content-type": "application/json" },
  },
  {
    name: "fetch in the runtime with the other main",
    code: `export default { fetch: () => new Response(null, { status: 204 }) };`,
    env: { FUNC_RUNTIME: "nodejs26" },
    status: 204,
    body: "",
  },
  {
    name: "a listener with a name of its own, the only function",
    code: `exports.limit = 1; exports.helloWorld = (request, response) => { response.status(201).send("own " + request.query.x); };`,
    status: 201,
    body: "own 1,2",
  },
  ...[
    `export default async (request) => new Response(new URL(request.url).pathname);`,
    `export default function handler(req, context) { context.waitUntil(0); return new Response(new URL(req.url).pathname); }`,
    `export default (request, env, ctx) => new Response(new URL(request.url).pathname + (env.FUNC_NAME === "hello" && ctx.waitUntil ? "" : "?"));`,
    `module.exports = async (req) => new Response(new URL(req.url).pathname);`,
  ].map((code) => ({ name: `the web's request of a function: ${code}`, code, body: "/a/b" })),
  {
    name: "fetch with a class that extends Response",
    code: `class Own extends Response {} export default { fetch: () => new Own("own", { status: 202 }) };`,
    status: 202,
    body: "own",
  },
  {
    name: "fetch with a class that extends Node.js' own Response",
    code: `class Own extends globalThis.Response {} export default { fetch: async () => new Own("own", { status: 202 }) };`,
    status: 202,
    body: "own",
  },
  ...polyfills.map(([body, text]) => ({
    name: `fetch with a polyfill's Response whose body is ${body}`,
    code: `const { Readable } = require("node:stream");
      class PonyfillResponse {
        status = 203; headers = new Headers([["x-a", "1"], ["set-cookie", "a=1"], ["set-cookie", "b=2"]]); body = ${body};
        async arrayBuffer() { return new TextEncoder().encode("asked").buffer; } }
      module.exports = { fetch: () => new PonyfillResponse() };`,
    status: 203,
    body: text,
    headers: { "x-a": "1", "set-cookie": ["a=1", "b=2"] },
  })),
  {
    name: "fetch with node-fetch's headers",
    code: `class Fields { get() { return null; } *[Symbol.iterator]() { yield ["set-cookie", "a=1, b=2"]; } raw() { return { "set-cookie": ["a=1", "b=2"] }; } }
      module.exports = { fetch: () => ({ status: 200, headers: new Fields(), body: null }) };`,
    body: "",
    headers: { "set-cookie": ["a=1", "b=2"] },
  },
  {
    name: "fetch with data that looks like a response",
    code: `export default { fetch: () => ({ status: 404, headers: { a: "1" }, body: "b" }) };`,
    body: '{"status":404,"headers":{"a":"1"},"body":"b"}',
  },
  {
    name: "fetch that returns nothing",
    code: `export default { fetch() {} };`,
    status: 500,
    body: "Internal server error",
  },
  {
    name: "fetch of a router that is a Proxy, the default export",
    code: `${proxyRouter} export default router();`,
    body: "routed",
  },
  {
    name: "fetch of a router that is a Proxy, the module",
    code: `${proxyRouter} module.exports = router();`,
    body: "routed",
  },
  {
    name: "fetch that is handed too much",
    code: `export default { fetch: async (request) => new Response(await request.text()) };`,
    env: { REQ_MB_LIMIT: "0.001" },
    request: {
      method: "POST",
      headers: { "transfer-encoding": "chunked" },
      body: "x".repeat(2000),
    },
    status: 413,
    body: "the request body is larger than 0.001 MB (FUNC_BODY_MB_LIMIT)",
  },
  {
    name: "func's handle",
    code: `exports.handle = async (context, body) => ({ statusCode: 202, headers: { "x-q": context.query.x.join() }, body: { got: body, method: context.method } });`,
    request: { method: "POST", headers: json, body: '{"a":1}' },
    status: 202,
    body: '{"got":{"a":1},"method":"POST"}',
    headers: { "x-q": "1,2" },
  },
  {
    name: "func's handle of an event",
    code: `export const handle = (context, event) => context.cloudEventResponse({ n: event.data.n + 1 }).type("answer").source("/fn").response();`,
    request: { method: "POST", headers: { ...json, ...event }, body: '{"n":1}' },
    body: '{"n":2}',
    headers: { "ce-type": "answer", "ce-source": "/fn", "ce-specversion": "1.0" },
  },
  {
    name: "an application that HANDLER_FUNC_NAME names",
    code: `exports.main = () => "main"; exports.run = { use() {}, callback: () => (request, response) => response.end("run") };`,
    env: { HANDLER_FUNC_NAME: "run" },
    body: "run",
  },
  {
    name: "a fetch that HANDLER_FUNC_NAME names",
    code: `exports.main = () => "main"; exports.run = { fetch: () => new Response("run") };`,
    env: { HANDLER_FUNC_NAME: "run" },
    body: "run",
  },
  {
    name: "a listener that HANDLER_FUNC_NAME names",
    code: `exports.main = () => "main"; exports.run = (req, res) => { res.end("run"); };`,
    env: { HANDLER_FUNC_NAME: "run" },
    body: "run",
  },
  {
    name: "what FUNCTION_TARGET names, before main",
    code: `exports.main = () => "main"; exports.run = (req, res) => { res.send("run"); };`,
    env: { FUNCTION_TARGET: "run" },
    body: "run",
  },
  {
    name: "what is registered with Google's framework, before main and an application",
    code: `exports.main = () => "main"; exports.app = { use() {}, callback() {} };
      require("@google-cloud/functions-framework").http("run", (req, res) => { res.send("run"); });`,
    body: "run",
  },
  {
    name: "a Lambda handler, before the application that it adapts",
    code: `exports.app = { use() {}, callback: () => (request, response) => response.end("app") }; exports.handler = async (event) => "lambda";`,
    body: "lambda",
  },
  {
    name: "main before all others",
    code: `exports.handler = exports.handle = exports.fetch = () => "other"; exports.main = () => "main";`,
    body: "main",
  },
];

describe("a Function is answered by", () => {
  test.each(rows)("$name", expectAnswer);
});

describe("fetch", () => {
  test("streams events as they come, and stops when nobody listens", async () => {
    const { url, stdout } = await startFunction(`export default { fetch(request) {
      request.signal.addEventListener("abort", () => console.log("aborted"));
      let timer, n = 0;
      const body = new ReadableStream({
        start(controller) { timer = setInterval(() => controller.enqueue(new TextEncoder().encode("data: " + n++ + "\\n\\n")), 20); },
        cancel() { clearInterval(timer); console.log("cancelled"); } });
      return new Response(body, { headers: { "content-type": "text/event-stream" } }); } };`);
    const asked = get(url);
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    expect(answer.headers["content-type"]).toBe("text/event-stream");
    const [first] = (await once(answer, "data")) as [Buffer];
    expect(first.toString()).toBe("data: 0\n\n");
    asked.destroy();
    await expect.poll(stdout).toContain("cancelled\n");
    await expect.poll(stdout).toContain("aborted\n");
  });

  test("echoes a stream while it is still being sent", async () => {
    const { url } = await startFunction(
      `export default { fetch: (request) => new Response(request.body) };`,
    );
    const answer = await send(url, { method: "POST", body: "x".repeat(500_000) });
    expect(answer.body.length).toBe(500_000);
  });

  test("may go on after its answer, also when the runtime stops", async () => {
    const fn = await startFunction(`export default { fetch(request, env, ctx) {
      ctx.waitUntil(new Promise((done) => setTimeout(done, 300)).then(() => console.log("finished")));
      return new Response("ok"); } };`);
    expect((await send(fn.url)).body).toBe("ok");
    fn.process.kill("SIGTERM");
    await fn.exited;
    expect(fn.stdout()).toBe("finished\n");
  });
});
