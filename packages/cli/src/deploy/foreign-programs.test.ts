import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished, expect, test } from "vitest";
import { openProject } from "../project/project.ts";
import { refuseForeign } from "./foreign-programs.ts";

function projectWith(code: string, name = "handler.js") {
  const root = mkdtempSync(path.join(tmpdir(), "spry-foreign-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  writeFileSync(path.join(root, name), code);
  writeFileSync(path.join(root, "spry.yaml"), "name: a\nruntime: nodejs24\n");
  return openProject(root);
}

test.each([
  [`Deno.serve(() => new Response("x"));`, "Deno.serve is part of Deno"],
  [`Bun.serve({ fetch: () => new Response("x") });`, "Bun.serve is part of Bun"],
  [`addEventListener("fetch", (event) => {});`, "service workers of Cloudflare"],
  [`import { DurableObject } from "cloudflare:workers"; export default {};`, "`cloudflare:`"],
  [`export default { fetch: () => caches.default.match("x") };`, "caches is part of"],
  [`export default { fetch: () => new HTMLRewriter() };`, "HTMLRewriter is part of"],
  [`export default { fetch: () => new WebSocketPair() };`, "export function websocket"],
  [`const { app } = require("@azure/functions"); app.http("a", {});`, "Azure Functions"],
  [`module.exports = async function (context, req) { context.res = {}; };`, "Azure Functions"],
  [`module.exports = async (context, req) => {};`, "Azure Functions"],
  [
    `export default class Site {\n  async fetch(request) { return new Response("x"); }\n}`,
    "export an instance",
  ],
])("deploy refuses before it sends: %s", (code, says) => {
  const project = projectWith(code);
  expect(() => refuseForeign(project)).toThrow(`handler.js: `);
  expect(() => refuseForeign(project)).toThrow(says);
});

test("deploy refuses TypeScript of another platform", () => {
  const code = `import type { Context, HttpRequest } from "./own";\nexport default async function (context: Context, req: HttpRequest): Promise<void> {}`;
  expect(() => refuseForeign(projectWith(code, "handler.ts"))).toThrow("Azure Functions");
});

test.each([
  `// Deno.serve( is not for this platform\nexport default { fetch: () => new Response("x") };`,
  `if (typeof Bun !== "undefined") Bun.serve({}); export default { fetch() {} };`,
  `if (globalThis.Deno) Deno.serve(() => {}); export default { fetch() {} };`,
  `const caches = { default: new Map() }; exports.main = () => caches.default.has("x");`,
  `exports.main = () => new HTMLRewriter();`,
  `module.exports = async (context, callback) => callback(200, "Fission");`,
  `module.exports = async (event, context) => context.succeed("OpenFaaS");`,
  `const env = { A: process.env.A }; export default { fetch: () => new Response(env.A) };`,
  `process.env.LIST.get("x");`,
])("deploy lets through: %s", (code) => {
  expect(refuseForeign(projectWith(code))).toEqual([]);
});

test("deploy warns of bindings, by name", () => {
  const code = `export default { fetch: async (request, env) => new Response(await env.CACHE.get("x") + (await env.DB.prepare("y").first())) };`;
  expect(refuseForeign(projectWith(code))).toEqual([
    "handler.js: env.CACHE, env.DB: bindings of Cloudflare Workers do not exist here, env has variables only: use a client of the database or service",
  ]);
});

test.each([
  [
    "wrangler.toml",
    `name = "blog"\n[vars]\nGREETING = "hi"\nOWN = "mine"\n# ASIDE = 1\n\n[[kv_namespaces]]\nbinding = "POSTS"\nid = "x"\n\n[durable_objects]\nbindings = [{ name = "COUNTER", class_name = "Counter" }]\n`,
  ],
  [
    "wrangler.jsonc",
    `{ // a Worker\n  "vars": { "GREETING": "hi", "OWN": "mine" },\n  "kv_namespaces": [{ "binding": "POSTS", "id": "x" }],\n  "durable_objects": { "bindings": [{ "name": "COUNTER", "class_name": "Counter" }] }\n}`,
  ],
])("deploy warns of what %s promises", (name, text) => {
  const { root } = projectWith(
    "export default { fetch: (request, env) => new Response(env.GREETING) };",
  );
  writeFileSync(path.join(root, name), text);
  writeFileSync(path.join(root, "spry.yaml"), "name: a\nruntime: nodejs24\nenv: { OWN: mine }\n");
  expect(refuseForeign(openProject(root))).toEqual([
    "handler.js: env.POSTS, env.COUNTER: bindings of Cloudflare Workers do not exist here, env has variables only: use a client of the database or service",
    `handler.js: the variables GREETING of ${name} are not set here: write them below env of spry.yaml`,
  ]);
});
