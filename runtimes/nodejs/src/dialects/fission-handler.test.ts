import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "../testing/handler-rows.ts";
import { send, startFunction } from "../testing/running-function.ts";

const json = { "content-type": "application/json" };

const rows: Row[] = [
  {
    name: "status, body and headers",
    code: `module.exports = async (context) => ({ status: 201, headers: { "X-A": context.request.get("x-b"), "Content-Type": "text/plain" }, body: context.request.path + context.request.query.x });`,
    request: { headers: { "x-b": "c" } },
    status: 201,
    body: "/a/b1,2",
    headers: { "x-a": "c", "content-type": "text/plain; charset=utf-8" },
  },
  {
    name: "an object as body, in an ES module",
    code: `export default async function (context) { return { status: 200, body: { ...context.request.body, b: 2 } }; }`,
    request: { method: "POST", headers: json, body: '{"a":1}' },
    body: '{"a":1,"b":2}',
    headers: { "content-type": "application/json; charset=utf-8" },
  },
  {
    name: "a context that is taken apart",
    code: `module.exports = async ({ request }) => ({ status: 200, body: request.method });`,
    body: "GET",
  },
  {
    name: "a function that takes nothing",
    code: `module.exports = async () => ({ status: 202, body: "nothing taken" });`,
    status: 202,
    body: "nothing taken",
  },
  {
    name: "a status alone",
    code: `module.exports = async (context) => ({ status: 204 });`,
    status: 204,
    body: "",
  },
  {
    name: "a stream as body",
    code: `module.exports = async (context) => ({ status: 200, headers: { "content-type": "text/plain" }, body: require("node:stream").Readable.from(["a", "b"]) });`,
    body: "ab",
  },
  {
    name: "a callback that comes later",
    code: `module.exports = (context, callback) => { setTimeout(callback, 5, 203, "called", { "x-a": "1" }); };`,
    status: 203,
    body: "called",
    headers: { "x-a": "1" },
  },
  {
    name: "a callback that is called without a status",
    code: `module.exports = (context, callback) => callback("");`,
    status: 500,
    body: "Internal server error",
  },
  {
    name: "the response itself",
    code: `module.exports = async (context) => { context.response.status(418).send("tea"); };`,
    status: 418,
    body: "tea",
  },
  {
    name: "an error",
    code: `module.exports = async (context) => { throw new Error("secret"); };`,
    status: 500,
    body: "Internal server error",
  },
  {
    name: "one of several entry points",
    code: `exports.first = async (context) => ({ status: 200, body: "first" }); exports.second = async (context) => ({ status: 200, body: "second" });`,
    env: { HANDLER_FUNC_NAME: "second" },
    body: "second",
  },
  {
    name: "OpenFaaS' older template, whose context is the body",
    code: `module.exports = (context, callback) => { callback(undefined, { got: JSON.parse(context).a }); };`,
    request: { method: "POST", body: '{"a":1}' },
    body: '{"got":1}',
  },
  {
    name: "OpenFaaS' older template, by what it returns",
    code: `module.exports = async (context, callback) => { return { status: "done" }; };`,
    body: '{"status":"done"}',
  },
];

describe("a Function of Fission answers by", () => {
  test.each(rows)("$name", expectAnswer);
});

describe("a Function of Fission for WebSockets", () => {
  const code = `module.exports = async function (ws, clients) {
    ws.on("message", (data) => clients.forEach((each) => each.send(data)));
    ws.on("close", (code) => console.log("closed", code, clients.size));
  };`;

  test("reaches all that are connected", async () => {
    const { url, stdout } = await startFunction(code);
    const sockets = [new WebSocket(url), new WebSocket(url)];
    await Promise.all(sockets.map((each) => once(each, "open")));
    const heard = sockets.map(async (each) => {
      const [event] = (await once(each, "message")) as [MessageEvent];
      return event.data as unknown;
    });
    // The other one's handler has been called when its own message comes back.
    sockets[1]?.send("second");
    expect(await Promise.all(heard)).toEqual(["second", "second"]);
    sockets[0]?.close(4000);
    await expect.poll(stdout).toContain("closed 4000 1");
  });

  test("answers other requests with 426", async () => {
    const { url } = await startFunction(code);
    expect(await send(url)).toMatchObject({ status: 426, body: "Upgrade Required" });
  });
});
