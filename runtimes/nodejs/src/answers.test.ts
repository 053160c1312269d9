import { get } from "node:http";
import { describe, expect, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";

/** A Function that answers by path, so that one process serves all rows. */
const handler = `
const { Readable } = require("node:stream");
const answers = {
  text: () => "hello",
  object: () => ({ a: [1, { b: null }] }),
  list: () => [1, 2],
  number: () => 42,
  true: () => true,
  bigint: () => 7n,
  buffer: () => Buffer.from([0, 1, 255]),
  promise: async () => "later",
  nothing: () => undefined,
  zero: () => 0,
  false: () => false,
  null: () => null,
  empty: () => "",
  stream: () => Readable.from(["a", "b"]),
  generator: async function* () { yield "x"; yield "y"; },
  response: () => new Response("created", { status: 201, headers: { "x-a": "1" } }),
  status: (event) => { event.setResponseStatus(400); },
  type: (event) => { event.setResponseContentType("text/html"); return "<p>"; },
  header: (event) => { event.setResponseHeader("x-b", "2"); return "ok"; },
  express: (event) => { event.extensions.response.status(418).json({ teapot: true }); },
  write: (event) => { const r = event.extensions.response; r.write("1"); setTimeout(() => r.end("2"), 20); },
  pipe: (event) => { Readable.from(["p", "q"]).pipe(event.extensions.response); },
  error: () => { throw new Error("secret detail"); },
  string: () => { throw "a message for you"; },
  rejected: async () => { throw new Error("secret detail"); },
  circular: () => { const a = {}; a.a = a; return a; },
};
module.exports = { main: (event, context) => answers[event.extensions.request.path.slice(1)](event, context) };
`;

const text = "text/plain; charset=utf-8";

const rows: { path: string; status?: number; body: string; type?: string }[] = [
  { path: "text", body: "hello" },
  { path: "object", body: '{"a":[1,{"b":null}]}', type: "application/json; charset=utf-8" },
  { path: "list", body: "[1,2]", type: "application/json; charset=utf-8" },
  { path: "number", body: "42" },
  { path: "true", body: "true" },
  { path: "bigint", body: "7" },
  { path: "promise", body: "later" },
  { path: "nothing", body: "" },
  { path: "zero", body: "" },
  { path: "false", body: "" },
  { path: "null", body: "" },
  { path: "empty", body: "" },
  { path: "stream", body: "ab", type: "application/octet-stream" },
  { path: "generator", body: "xy", type: "application/octet-stream" },
  { path: "response", status: 201, body: "created", type: "text/plain;charset=UTF-8" },
  { path: "status", status: 400, body: "" },
  { path: "type", body: "<p>", type: "text/html; charset=utf-8" },
  { path: "header", body: "ok" },
  {
    path: "express",
    status: 418,
    body: '{"teapot":true}',
    type: "application/json; charset=utf-8",
  },
  { path: "write", body: "12" },
  { path: "pipe", body: "pq" },
  { path: "error", status: 500, body: "Internal server error", type: text },
  { path: "string", status: 500, body: "a message for you", type: text },
  { path: "rejected", status: 500, body: "Internal server error", type: text },
  { path: "circular", status: 500, body: "Internal server error", type: text },
];

describe("a handler's result", () => {
  test("becomes the answer", async () => {
    const { url, stderr } = await startFunction(handler);
    for (const { path, status = 200, body, type } of rows) {
      const answer = await send(`${url}/${path}`);
      expect({
        path,
        status: answer.status,
        body: answer.body,
        type: answer.headers["content-type"],
      }).toEqual({ path, status, body, type });
      expect(answer.headers["access-control-allow-origin"]).toBe("*");
      expect(answer.headers["x-powered-by"]).toBeUndefined();
    }
    expect((await send(`${url}/buffer`)).bytes).toEqual(Buffer.from([0, 1, 255]));
    await expect.poll(stderr).toMatch(/Error: secret detail\n\s+at /);
  });

  test("may come by callback, and then later", async () => {
    const { url } = await startFunction(`module.exports.main = (event, context, send) => {
      setTimeout(() => send({ late: true }, 202, { "x-c": "3" }), 10);
    };`);
    const answer = await send(url);
    expect(answer).toMatchObject({ status: 202, body: '{"late":true}' });
    expect(answer.headers["x-c"]).toBe("3");
  });

  test("that does not come in time is 408, and is dropped when it comes", async () => {
    const { url } = await startFunction(
      `module.exports.main = () => new Promise((done) => setTimeout(done, 300, "late"));`,
      { FUNC_TIMEOUT: "0.1" },
    );
    expect(await send(url)).toMatchObject({ status: 408, body: "Request Timeout" });
    await new Promise((done) => setTimeout(done, 350));
    expect((await send(`${url}/healthz`)).status).toBe(200);
  });

  test("that does not come in time is told so by context.signal, and so is one for nobody", async () => {
    const code = `module.exports.main = (event, { signal }) => new Promise(() => {
      signal.addEventListener("abort", () => console.log(signal.reason.name));
      console.log("begun");
    });`;
    const brief = await startFunction(code, { FUNC_TIMEOUT: "0.2" });
    expect((await send(brief.url)).status).toBe(408);
    await expect.poll(brief.stdout).toBe("begun\nTimeoutError\n");
    const { url, stdout } = await startFunction(code);
    const asked = get(url).on("error", () => {});
    await expect.poll(stdout).toBe("begun\n");
    asked.destroy();
    await expect.poll(stdout).toBe("begun\nAbortError\n");
  });

  test("is counted, with its duration until it is there", async () => {
    const { url } = await startFunction(`module.exports.main = async (event) => {
      if (event.extensions.request.query.fail) throw new Error("x");
      await new Promise((done) => setTimeout(done, 600));
    };`);
    await send(url);
    await send(`${url}/?fail=1`);
    const { body } = await send(`${url}/metrics`);
    expect(body).toContain("\nfunction_calls_total 2\n");
    expect(body).toContain("\nfunction_failures_total 1\n");
    expect(body).toContain('function_duration_miliseconds_bucket{le="500"} 1\n');
    expect(body).toContain('function_duration_miliseconds_bucket{le="+Inf"} 2\n');
  });
});
