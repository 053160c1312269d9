/** Express' request and response, as handlers have them. */
import { describe, expect, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";

describe("event.extensions", () => {
  test("has Express' request", async () => {
    const { url } =
      await startFunction(`module.exports.main = ({ extensions: { request: r } }) => ({
      query: r.query, path: r.path, url: r.url, originalUrl: r.originalUrl, method: r.method, params: r.params,
      host: r.hostname, ip: r.ip, protocol: r.protocol, get: r.get("X-Thing"), header: r.header("x-thing"),
      is: [r.is("json"), r.is("text/*", "application/json"), r.is("html")], body: r.body,
      accepts: [r.accepts("html", "json"), r.accepts(["png"])], xhr: r.xhr, headers: r.headers["x-thing"] });`);
    const headers = {
      "x-thing": "1",
      host: "hello.default.localhost:80",
      accept: "text/html;q=0.5, application/json",
      "content-type": "application/json",
      "x-requested-with": "XMLHttpRequest",
    };
    const { body } = await send(`${url}/a%20b/c?x=1&y[z]=2`, {
      method: "PUT",
      headers,
      body: "{}",
    });
    expect(JSON.parse(body)).toEqual({
      query: { x: "1", y: { z: "2" } },
      path: "/a%20b/c",
      url: "/a%20b/c?x=1&y[z]=2",
      originalUrl: "/a%20b/c?x=1&y[z]=2",
      method: "PUT",
      params: { 0: "/a%20b/c" },
      host: "hello.default.localhost",
      ip: "127.0.0.1",
      protocol: "http",
      get: "1",
      header: "1",
      is: ["json", "application/json", false],
      body: {},
      accepts: ["json", false],
      xhr: true,
      headers: "1",
    });
  });

  const answers: {
    code: string;
    status?: number;
    body: string;
    headers?: Record<string, unknown>;
  }[] = [
    {
      code: `r.status(201).json({ a: 1 })`,
      status: 201,
      body: '{"a":1}',
      headers: { "content-type": "application/json; charset=utf-8" },
    },
    { code: `r.send("<b>")`, body: "<b>", headers: { "content-type": "text/html; charset=utf-8" } },
    {
      code: `r.send(Buffer.from("b"))`,
      body: "b",
      headers: { "content-type": "application/octet-stream" },
    },
    { code: `r.send({ a: 1 })`, body: '{"a":1}' },
    {
      code: `r.sendStatus(404)`,
      status: 404,
      body: "Not Found",
      headers: { "content-type": "text/plain; charset=utf-8" },
    },
    {
      code: `r.type("xml").end("<a/>")`,
      body: "<a/>",
      headers: { "content-type": "application/xml" },
    },
    {
      code: `r.set("X-A", "1").set({ "x-b": 2 }).header("x-c", ["3", "4"]).end(r.get("x-a"))`,
      body: "1",
      headers: { "x-a": "1", "x-b": "2", "x-c": "3, 4" },
    },
    {
      code: `r.redirect("/ü?a=%20")`,
      status: 302,
      body: "Found. Redirecting to /ü?a=%20",
      headers: { location: "/%C3%BC?a=%20" },
    },
    {
      code: `r.redirect(308, "https://example.org/")`,
      status: 308,
      body: "Permanent Redirect. Redirecting to https://example.org/",
      headers: { location: "https://example.org/" },
    },
    {
      code: `r.cookie("a", "b c", { httpOnly: true, sameSite: "lax", maxAge: 1000 }).clearCookie("d").end()`,
      body: "",
      headers: {
        "set-cookie": [
          expect.stringMatching(
            /^a=b%20c; Max-Age=1; Path=\/; Expires=.* GMT; HttpOnly; SameSite=Lax$/,
          ),
          "d=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        ],
      },
    },
    {
      code: `r.attachment("ü.pdf").end()`,
      body: "",
      headers: {
        "content-type": "application/pdf",
        "content-disposition": `attachment; filename="?.pdf"; filename*=UTF-8''%C3%BC.pdf`,
      },
    },
    {
      code: `r.locals.x = 1; r.writeHead(202, { "x-d": "1" }); r.write("a"); r.end("b")`,
      status: 202,
      body: "ab",
      headers: { "x-d": "1", "access-control-allow-origin": "*" },
    },
    {
      code: `r.writeHead(203, "Said", ["x-d", "1", "x-d", "2"]).end("a")`,
      status: 203,
      body: "a",
      headers: { "x-d": "1, 2", "access-control-allow-origin": "*" },
    },
    {
      code: `r.writeHead(200, [["x-d", "1"], ["x-e", "2"]]).end("a")`,
      body: "a",
      headers: { "x-d": "1", "x-e": "2", "access-control-allow-origin": "*" },
    },
    {
      code: `r.set("x-d", "1").writeHead(200, { "x-e": "2" }).end("a")`,
      body: "a",
      headers: { "x-d": "1", "x-e": "2", "access-control-allow-origin": "*" },
    },
    ...[
      `{ "access-control-ALLOW-origin": "https://a.example" }`,
      `["access-control-ALLOW-origin", "https://a.example"]`,
      `[["access-control-ALLOW-origin", "https://a.example"]]`,
    ].map((headers) => ({
      code: `r.writeHead(200, ${headers}).end("a")`,
      body: "a",
      headers: { "access-control-allow-origin": "https://a.example" },
    })),
    {
      code: `r.set("Access-Control-Allow-Origin", "https://a.example").end()`,
      body: "",
      headers: { "access-control-allow-origin": "https://a.example" },
    },
  ];
  test("has Express' response", async () => {
    const cases = answers.map(({ code }) => `(r) => { ${code}; }`).join(",\n");
    const { url } = await startFunction(`const cases = [${cases}];
      module.exports.main = ({ extensions }) => cases[extensions.request.query.n](extensions.response);`);
    for (const [n, { code, status = 200, body, headers = {} }] of answers.entries()) {
      const answer = await send(`${url}/?n=${n}`);
      expect({ code, status: answer.status, body: answer.body }).toEqual({ code, status, body });
      expect(answer.headers).toMatchObject(headers);
    }
  });
});
