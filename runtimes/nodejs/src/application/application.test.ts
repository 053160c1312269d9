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
  ])("%s", async (_, code, body) => {
    const { url } = await startFunction(code);
    const answer = await send(`${url}/a`);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual(typeof body === "string" ? body : expect.stringMatching(body));
  });
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

test("a program that neither exports nor listens fails with a message when it has nothing left to do", async () => {
  const { code, stderr } = await failToStart(`setTimeout(() => {}, 300);`);
  expect(code).toBe(1);
  expect(stderr).toContain("it has no exports");
});
