import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { failToStart, send, startFunction } from "../testing/running-function.ts";

/** The members by which frameworks are recognized; the frameworks themselves are tested in `test/e2e/deploy.test.ts`. */
const express = `
  const { IncomingMessage, ServerResponse } = require("node:http");
  const express = () => {
    const app = (request, response) => app.handle(request, response);
    app.use = () => {};
    const members = { request: Object.create(IncomingMessage.prototype), response: Object.create(ServerResponse.prototype) };
    members.response.json = function (value) { this.setHeader("content-type", "application/json"); this.end(JSON.stringify(value)); };
    app.handle = (request, response) => {
      Object.setPrototypeOf(request, members.request);
      Object.setPrototypeOf(response, members.response);
      request.originalUrl = request.originalUrl || request.url;
      if (request.url === "/slow") return;
      let body = "";
      request.on("data", (chunk) => (body += chunk)).on("end", () => response.json({ url: request.originalUrl, body }));
    };
    return app;
  };`;

const koa = `class Koa { use() {} callback() { return async (request, response) => { response.end("koa " + request.url); }; } }`;

/** Without a `listen`, and for a request and response that an application has prepared. */
const router = `
  const router = (request, response, next) => router.handle(request, response, next);
  router.use = router.route = () => {};
  router.handle = (request, response, next) => response.end("routed " + request.url);`;

const koaCallback = `(() => { const handle = new Koa().callback(); return (req, res) => handle(req, res); })()`;

const fastify = `
  const { createServer } = require("node:http");
  class Fastify {
    #isReady = false;
    server = createServer((request, response) => response.end("fastify " + this.#isReady));
    async ready() { this.#isReady = true; }
    async inject() {}
    async close() { console.log("closed"); }
    async listen(options) { this.server.listen(options); await require("node:events").once(this.server, "listening"); }
  }`;

const server = `const server = require("node:http").createServer((request, response) => response.end("mine " + request.url));`;

describe("an application is served that is", () => {
  test.each([
    ["Express', as `app`", `${express} exports.app = express();`, '{"url":"/a","body":""}'],
    ["Express', as the module", `${express} module.exports = express();`, '{"url":"/a","body":""}'],
    ["Koa's, as the default export", `${koa} export default new Koa();`, "koa /a"],
    ["Fastify's, when it is ready", `${fastify} exports.app = new Fastify();`, "fastify true"],
    ["a server", `${server} exports.server = server;`, "mine /a"],
    ["a server that listens", `${server} server.listen(process.env.PORT || 3000);`, "mine /a"],
    [
      "a server that listens once a database is there",
      `${server} setTimeout(() => server.listen(3000), 200);`,
      "mine /a",
    ],
    [
      "a server that a program with a top-level await waits for",
      `import { createServer } from "node:http";
       const server = createServer((request, response) => response.end("port " + server.address().port));
       await new Promise((resolve) => server.listen({ port: 3000 }, resolve));`,
      /^port \d+$/,
    ],
    [
      "exported, and listens too",
      `${koa} ${server} server.listen(3000); exports.app = new Koa();`,
      "koa /a",
    ],
    [
      "exported, next to a server that asks for PORT",
      `${koa} ${server} server.listen(process.env.PORT || 3000); exports.app = new Koa();`,
      "mine /a",
    ],
    [
      "exported, next to a server for 8080",
      `${koa} ${server} server.listen({ port: "8080" }); exports.app = new Koa();`,
      "mine /a",
    ],
    [
      "a server that asks for PORT, next to a handler, as Astro's adapter has it",
      `${server} server.listen(process.env.PORT ?? 4321); exports.handler = async (...all) => {}; exports.options = {};`,
      "mine /a",
    ],
    [
      "a server that listens later, of a program that exports something",
      `${server} exports.config = {}; exports.start = () => { throw new Error("again"); }; setTimeout(() => server.listen(3000), 100);`,
      "mine /a",
    ],
    [
      "the server for requests, of several",
      `${server} require("node:http").createServer().listen(0); server.listen(8080);`,
      "mine /a",
    ],
    ["Express' router", `${express} ${router} exports.default = router;`, "routed /a"],
    ["Koa's callback, the module", `${koa} module.exports = ${koaCallback};`, "koa /a"],
    ["Koa's callback, as the handler", `${koa} exports.handler = ${koaCallback};`, "koa /a"],
    ["a listener", `export default (req, res) => res.end("mine " + req.url);`, "mine /a"],
    [
      "a listener called handler",
      `exports.handler = async function (request, response, next) { response.end("mine " + request.url); };`,
      "mine /a",
    ],
    [
      "middleware that has nothing for it",
      `module.exports = (req, res, next) => next();`,
      "Not Found",
      404,
    ],
    [
      "middleware that fails",
      `module.exports = (req, res, next) => next(new Error("secret"));`,
      "Internal server error",
      500,
    ],
  ] as [name: string, code: string, body: string | RegExp, status?: number][])(
    "%s",
    async (_, code, body, status = 200) => {
      const { url } = await startFunction(code);
      const answer = await send(`${url}/a`);
      expect(answer.status).toBe(status);
      expect(answer.body).toEqual(typeof body === "string" ? body : expect.stringMatching(body));
    },
  );
});

test("its body is unread, and of any size that it takes itself", async () => {
  const { url } = await startFunction(`${express} exports.app = express();`);
  const answer = await send(`${url}/a`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"a":1}',
  });
  expect(JSON.parse(answer.body)).toEqual({ url: "/a", body: '{"a":1}' });
});

test("an announced length above the limit is refused before it is called", async () => {
  const { url } = await startFunction(`${express} exports.app = express();`, {
    REQ_MB_LIMIT: "0.001",
  });
  expect((await send(`${url}/a`, { method: "POST", body: "x".repeat(2000) })).status).toBe(413);
});

test("a time limit ends a request that it does not answer, and a client that leaves ends nothing else", async () => {
  const { url, stderr } = await startFunction(`${express} exports.app = express();`, {
    FUNC_TIMEOUT: "1",
  });
  expect((await send(`${url}/slow`)).status).toBe(408);
  const { hostname, port } = new URL(url);
  const client = connect(Number(port), hostname);
  await once(client, "connect");
  client.write("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n");
  await new Promise((resolve) => setTimeout(resolve, 100));
  client.destroy();
  expect((await send(`${url}/a`)).status).toBe(200);
  expect(stderr()).not.toContain("TypeError");
});

test("its server gets requests to change the protocol, if it listens for them", async () => {
  const { url } = await startFunction(`${server}
    server.on("upgrade", (request, socket) => socket.end("HTTP/1.1 101 Switching Protocols\\r\\nupgrade: x\\r\\nconnection: upgrade\\r\\n\\r\\nhello"));
    server.listen(3000);`);
  const { hostname, port } = new URL(url);
  const client: Socket = connect(Number(port), hostname);
  client.write("GET / HTTP/1.1\r\nhost: a\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n");
  let text = "";
  client.on("data", (chunk) => (text += String(chunk)));
  await once(client, "end");
  expect(text).toMatch(/^HTTP\/1.1 101 [^]*hello$/);
});

test("a server next to a handler listens at the port that it specifies", async () => {
  const { url } = await startFunction(
    `${server} server.listen(0, "127.0.0.1"); exports.main = () => String(server.address().port);`,
  );
  await expect.poll(async () => (await send(url)).body).toMatch(/^\d+$/);
  const { body: port } = await send(url);
  expect(port).not.toBe(new URL(url).port);
  expect((await send(`http://127.0.0.1:${port}/b`)).body).toBe("mine /b");
});

describe("a listener gets", () => {
  const json = { "content-type": "application/json", cookie: "a=1; b=%20" };
  test.each([
    [
      "what Vercel adds",
      `export default (req, res) => res.status(201).json([req.query.x, req.body, req.cookies]);`,
      '["1",{"a":1},{"a":"1","b":" "}]',
      201,
    ],
    [
      "its body as a stream, too",
      `export default async (req, res) => { let text = ""; for await (const chunk of req) text += chunk; res.send(text + req.body.a); };`,
      '{"a":1}1',
      200,
    ],
    [
      "members that can be set",
      `export default (req, res) => { req.query = 1; req.body = 2; req.cookies = 3; res.json([req.query, req.body, req.cookies]); };`,
      "[1,2,3]",
      200,
    ],
  ])("%s", async (_, code, body, status) => {
    const { url } = await startFunction(code);
    const answer = await send(`${url}/?x=1`, { method: "POST", headers: json, body: '{"a":1}' });
    expect({ status: answer.status, body: answer.body }).toEqual({ status, body });
  });

  test("400 for a body that is asked for and not valid", async () => {
    const { url } = await startFunction(`export default (req, res) => res.json(req.body);`);
    const answer = await send(url, { method: "POST", headers: json, body: "{" });
    expect(answer).toMatchObject({ status: 400, body: expect.stringContaining("not valid JSON") });
  });

  test("bodies of other types as a stream that is still being sent", async () => {
    const { url } = await startFunction(
      `export default (req, res) => { let size = 0; req.on("data", (chunk) => (size += chunk.length)).on("end", () => res.end(String(size))); };`,
    );
    expect((await send(url, { method: "POST", body: "x".repeat(100_000) })).body).toBe("100000");
  });
});

test("a server for the Function's port, next to a handler, is not opened", async () => {
  const { url, stderr } = await startFunction(
    `${server} server.listen(8080); exports.main = () => "main";`,
  );
  expect((await send(url)).body).toBe("main");
  expect(stderr()).toContain("a server that asks for the Function's port is not opened");
});

test("a program that neither exports nor listens fails with a message when it has nothing left to do", async () => {
  const { code, stderr } = await failToStart(`setTimeout(() => {}, 300);`);
  expect(code).toBe(1);
  expect(stderr).toContain("it has no exports");
});

describe("a plugin of Fastify", () => {
  const plugin = `export default async function (fastify, opts) { fastify.route = "/a"; }\nexport const options = {};`;

  test("is registered with an application of the code's own Fastify", async () => {
    const { url } = await startFunction({
      "handler.mjs": plugin,
      "node_modules/fastify/index.js": `${fastify}
        module.exports = () => Object.assign(new Fastify(), { async ready() { await this.plugin(this, {}); },
          register(plugin) { this.plugin = plugin; this.server = createServer((request, response) => response.end("plugin for " + this.route)); } });`,
    });
    expect(await send(url)).toMatchObject({ status: 200, body: "plugin for /a" });
  });

  test("without Fastify is refused", async () => {
    const { stderr } = await failToStart({
      "handler.js": "module.exports = function (fastify, opts, done) { done(); };",
    });
    expect(stderr).toContain(
      "loading handler.js: it exports a plugin of Fastify, and fastify is not among the dependencies of package.json",
    );
  });
});
