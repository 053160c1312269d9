import { describe, expect, test } from "vitest";
import { failToStart, send, startFunction } from "./testing/running-function.ts";

type Row = [name: string, code: string, says: string | RegExp];
const refused: Row[] = [
  [
    "Azure, older",
    `module.exports = async function (context, req) { context.res = { body: "x" }; };`,
    "Azure Functions",
  ],
  ["Azure, older, by name", `exports.run = async (context, request) => {};`, "Azure Functions"],
  [
    "Azure, newer",
    `const { app } = require("@azure/functions"); app.http("a", { handler: () => {} });`,
    "the host of Azure Functions",
  ],
  ["Deno", `Deno.serve(() => new Response("x"));`, "Deno.serve is part of Deno"],
  ["Bun", `Bun.serve({ fetch: () => new Response("x") });`, "Bun.serve is part of Bun"],
  [
    "a service worker",
    `addEventListener("fetch", (event) => event.respondWith(new Response("x")));`,
    "service workers of Cloudflare",
  ],
  [
    "a module of Workers",
    `import { DurableObject } from "cloudflare:workers"; export default { fetch() {} };`,
    "modules `cloudflare:`",
  ],
  ["caches", `export default { fetch: () => caches.default.match("x") };`, "caches is part of"],
  [
    "HTMLRewriter",
    `export default { fetch: () => new HTMLRewriter() };`,
    "HTMLRewriter is part of",
  ],
  [
    "WebSocketPair",
    `export default { fetch: () => new WebSocketPair() };`,
    "export function websocket",
  ],
  [
    "a class with fetch",
    `export default class { fetch() { return new Response("x"); } }`,
    "export an instance",
  ],
  [
    "a Worker without fetch",
    `export default { async scheduled(event, env, ctx) {} };`,
    "has scheduled() of Cloudflare Workers and no fetch, so that no request reaches it: schedules of spry.yaml call fetch",
  ],
  ["h3", `module.exports = { use() {}, handler() {}, resolve() {}, stack: [] };`, "toNodeListener"],
];

describe("what is written for another platform is refused by name", () => {
  test.each(refused)("%s", async (_, code, says) => {
    const { code: exit, stderr } = await failToStart(code);
    expect(exit).toBe(1);
    expect(stderr).toMatch(/^loading handler\.js: /);
    expect(stderr.split("\n", 1)[0]).toContain(says);
  });
});

test.each([
  ["cloudflare:workers", "modules `cloudflare:` are part of Cloudflare Workers"],
  ["bun:sqlite", "modules `bun:` are part of Bun"],
  ["npm:hono", "modules `npm:` are part of Deno"],
])("a file that the handler imports is refused for %s", async (name, says) => {
  const { stderr } = await failToStart({
    "handler.mjs": `import "./own.mjs"; export default { fetch() {} };`,
    "own.mjs": `import "${name}";`,
  });
  expect(stderr.split("\n", 1)[0]).toContain(says);
});

test("names of its own are not the platform's, nor those in comments", async () => {
  const { url } = await startFunction(`// As with Deno.serve( and caches.default
    class HTMLRewriter { text = "own"; }
    const caches = { default: { match: () => "cached" } };
    export default { fetch: () => new Response(new HTMLRewriter().text + caches.default.match()) };`);
  expect((await send(url)).body).toBe("owncached");
});

test("a program that asks where it runs is not refused", async () => {
  const { url } = await startFunction(`if (typeof Bun !== "undefined") Bun.serve({ fetch() {} });
    export default { fetch: () => new Response(typeof caches === "undefined" ? "own" : caches.default) };`);
  expect((await send(url)).body).toBe("own");
});

test("bindings of Workers that the code asks for are named", async () => {
  const { stderr } = await startFunction(
    `export default { fetch: (request, env) => new Response(typeof env.CACHE), other: (env) => env.CACHE.get("x") };`,
  );
  expect(stderr()).toContain(
    "handler.js: env.CACHE: bindings of Cloudflare Workers do not exist here",
  );
});

test("handlers of a Worker that are not called are named", async () => {
  const { url, stderr } = await startFunction(
    `export default { fetch: () => new Response("ok"), scheduled() {}, queue() {} };`,
  );
  expect((await send(url)).body).toBe("ok");
  expect(stderr()).toContain(
    "handler.js: scheduled() of Cloudflare Workers is not called: schedules of spry.yaml call fetch",
  );
  expect(stderr()).toContain("queue() of Cloudflare Workers is not called");
});
