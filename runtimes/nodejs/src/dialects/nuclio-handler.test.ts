import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "../testing/handler-rows.ts";
import { failToStart, send, startFunction } from "../testing/running-function.ts";

const rows: Row[] = [
  {
    name: "a callback with text",
    code: `exports.handler = function (context, event) { context.callback(event.body.toString().toUpperCase()); };`,
    request: { method: "POST", body: "words" },
    body: "WORDS",
    headers: { "content-type": "text/plain; charset=utf-8" },
  },
  {
    name: "a callback that comes later",
    code: `exports.handler = (context, event) => { setTimeout(context.callback, 5, ""); };`,
    body: "",
  },
  {
    name: "a status and a body",
    code: `exports.handler = (context, event) => context.callback([201, { path: event.path, x: event.fields.x }]);`,
    status: 201,
    body: '{"path":"/a/b","x":"2"}',
    headers: { "content-type": "application/json; charset=utf-8" },
  },
  {
    name: "a Response",
    code: `exports.handler = (context, event) => context.callback(new context.Response("<p>", { "X-A": event.headers["X-B"], ...event.headers }, "text/html", 203));`,
    request: { method: "POST", headers: { "x-b": "c" }, body: "longer than the answer" },
    status: 203,
    body: "<p>",
    headers: { "x-a": "c", "content-type": "text/html; charset=utf-8" },
  },
  {
    name: "a Response of an object",
    code: `exports.handler = (context, event) => context.callback(new context.Response({ a: 1 }));`,
    body: '{"a":1}',
    headers: { "content-type": "application/json; charset=utf-8" },
  },
  {
    name: "bytes",
    code: `exports.handler = (context, event) => context.callback(Buffer.from("bytes"));`,
    body: "bytes",
  },
  {
    name: "a list",
    code: `exports.handler = (context, event) => context.callback([{ a: 1 }, 2]);`,
    body: '[{"a":1},2]',
  },
  {
    name: "what an asynchronous function returns",
    code: `exports.handler = async (context, event) => event.method + event.trigger.kind + event.url;`,
    body: "GEThttp/a/b?x=1&x=2",
  },
  {
    name: "an error",
    code: `exports.handler = async (context, event) => { throw new Error("secret"); };`,
    status: 500,
    body: "Internal server error",
  },
  {
    name: "what initContext has made",
    code: `exports.initContext = async (context) => { context.userData = { factor: 2 }; };
      exports.handler = (context, event) => { context.userData.calls = 1; context.callback(context.userData); };`,
    body: '{"factor":2,"calls":1}',
  },
  {
    name: "a function of another name, in an ES module",
    code: `export const reverse = (context, event) => context.callback(event.body.toString().split("").reverse().join(""));`,
    env: { HANDLER_FUNC_NAME: "reverse" },
    request: { method: "POST", body: "abc" },
    body: "cba",
  },
  {
    name: "a function whose event has no name that tells, beside initContext",
    code: `exports.initContext = () => {}; exports.handler = (c, e) => c.callback(e.method);`,
    body: "GET",
  },
];

describe("a Function of Nuclio answers by", () => {
  test.each(rows)("$name", expectAnswer);

  test("its callback, when several are called at the same time", async () => {
    const { url } = await startFunction(`const waiting = [];
      exports.handler = (context, event) => {
        waiting.push(() => context.callback(event.path));
        if (waiting.length === 2) for (const answer of waiting.reverse()) answer();
      };`);
    const answers = await Promise.all([send(`${url}/a`), send(`${url}/b`)]);
    expect(answers.map(({ body }) => body)).toEqual(["/a", "/b"]);
  });

  test("writes what it logs to the log, with its data", async () => {
    const { url, stdout, stderr } = await startFunction(`exports.handler = (context, event) => {
      context.logger.infoWith("began", { at: 1 }); context.logger.error("failed"); context.callback("");
    };`);
    await send(url);
    await expect.poll(stdout).toBe("began { at: 1 }\n");
    await expect.poll(stderr).toBe("failed\n");
  });

  test("does not start when initContext fails", async () => {
    const { code, stderr } = await failToStart(
      `exports.handler = (context, event) => context.callback(""); exports.initContext = () => { throw new Error("no factor"); };`,
    );
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringContaining("starting the Function: no factor"),
    });
  });
});
