/** What a Function sees of `Request`, `Response` and `fetch` is what it would see of Node.js' own. */
import { runInThisContext } from "node:vm";
import { expect, test } from "vitest";
import { send, startFunction } from "../testing/running-function.ts";

/** Each is an async function's body, run in the test's own process and in a Function. */
const programs = {
  "a text": `const r = new Response("ü"); return [r.status, r.statusText, r.ok, r.type, r.url, r.redirected, [...r.headers], r.bodyUsed, await r.text(), r.bodyUsed];`,
  "no body": `const r = new Response(); return [r.body, await r.text(), r.bodyUsed, [...r.headers], (await new Response(null).bytes()).length];`,
  "bytes, and its buffer is used again": `const b = new Uint8Array([65, 66]); const r = new Response(b); b.fill(0); return [[...r.headers], await r.text()];`,
  "a number": `return [await new Response(42).text(), await new Response(false).text()];`,
  "all of init": `const r = new Response("x", { status: 404, statusText: "Gone fishing", headers: { "X-A": "1", "content-type": "a/b" } }); return [r.status, r.ok, r.statusText, [...r.headers]];`,
  "headers of every kind": `return [{ a: 1 }, [["a", "1"], ["a", "2"]], new Headers({ a: "1" }), { A: "1", a: "2" }, { a: "  1 " }, { a: "" }].map((headers) => [...new Response("x", { headers }).headers]);`,
  "headers that are none": `return [{ "a b": "1" }, { a: "\\n" }, { a: "ü€" }, [["a"]], 5, { a: Symbol("x") }].map((headers) => { try { return [...new Response("x", { headers }).headers]; } catch (e) { return e.name; } });`,
  statuses: `return [200, 599, 199, 600, 204, 304, 200.7, "201", NaN, null, undefined].map((status) => { try { return new Response("x", { status }).status; } catch (e) { return e.name + e.message; } });`,
  "status texts": `return ["", "a\\nb", "ü", 5].map((statusText) => { try { return new Response("x", { statusText }).statusText; } catch (e) { return e.name; } });`,
  "odd inits": `return [null, undefined, 5, () => {}, [], new Response("a", { status: 201 }), Object.create({ status: 202 }), new Map()].map((init) => { try { return new Response("x", init).status; } catch (e) { return e.name; } });`,
  "headers that are changed": `const r = new Response("x"); const h = r.headers; h.set("a", "1"); h.append("set-cookie", "b"); await r.text(); return [r.headers === h, [...r.headers]];`,
  json: `const r = Response.json({ a: [1] }, { status: 201, headers: { b: "2" } }); return [r.status, [...r.headers], await r.json()];`,
  "json of nothing": `try { Response.json(undefined); } catch (e) { return [e.name, e.message]; }`,
  "redirect and error": `const r = Response.redirect("http://a/b"), e = Response.error(); return [r.status, r.headers.get("location"), e.type, e.status];`,
  clones: `const r = new Response("x", { headers: { a: "1" } }); const c = r.clone(); c.headers.set("a", "2"); return [r.headers.get("a"), await c.text(), r.bodyUsed, await r.text(), await (async () => r.clone())().catch((e) => e.name)];`,
  "read twice": `const r = new Response("x"); await r.text(); return await r.text().catch((e) => [e.name, e.message]);`,
  "a stream": `const r = new Response(new ReadableStream({ start(c) { c.enqueue(new TextEncoder().encode("ab")); c.close(); } })); return [[...r.headers], r.body instanceof ReadableStream, await r.text()];`,
  "a form": `const f = new FormData(); f.append("a", "b"); const r = new Response(f); return [/^multipart/.test(r.headers.get("content-type")), (await r.formData()).get("a")];`,
  "search parameters and blobs": `return [await new Response(new URLSearchParams("a=b")).text(), (await new Response("x").blob()).type, [...new Response(new Blob(["x"], { type: "a/b" })).headers]];`,
  instances: `const f = await fetch("data:,x"); return [new Response("x"), f, f.clone(), {}, null, "x", { [Symbol.toStringTag]: "Response" }].map((r) => [r instanceof Response, Object.prototype.toString.call(r)]);`,
  "a class of its own": `class Mine extends Response { constructor(t) { super(t, { status: 201 }); } get x() { return 1; } } const m = new Mine("a"); return [m.x, m.status, await m.text(), m instanceof Mine, m instanceof Response, new Response() instanceof Mine];`,
  names: `return [Response.name, Request.name, fetch.name, new Response("x").constructor === Response, new Request("http://a/").constructor === Request, Object.keys(new Response())];`,
  members: `return [Response, Request].map((c) => Object.getOwnPropertyNames(c.prototype).filter((n) => n !== "attribute").sort());`,
  "members of the class": `return Object.getOwnPropertyNames(Response).filter((n) => !["length", "name", "prototype"].includes(n)).sort();`,
  shown: `return require_inspect(new Response("x", { headers: { a: "1" } })).split("\\n").slice(0, 4);`,
  "a request": `const r = new Request("http://a/b c?d", { method: "post", body: "x", headers: { a: "1" } }); return [r.method, r.url, [...r.headers], r.bodyUsed, r.duplex, r.mode, r.signal.aborted, await r.clone().text(), await r.text(), r.bodyUsed];`,
  "a request of a request": `const r = new Request("http://a/", { method: "PUT", body: "x" }); const c = new Request(r, { headers: { b: "1" } }); return [c.method, c.headers.get("b"), await c.text(), r.bodyUsed];`,
  "a request as init": `const r = new Request("http://a/", { method: "PUT", body: "x", headers: { q: "1" } }); const c = new Request("http://b/", r); return [c.url, c.method, c.headers.get("q"), await c.text()];`,
  "requests that are none": `return [["nothing"], ["http://u:p@a/"], ["http://a/", { method: "CONNECT" }], ["http://a/", { body: "x" }]].map((args) => { try { return new Request(...args).url; } catch (e) { return e.name; } });`,
  "a request of a class of its own": `class Mine extends Request {} const m = new Mine("http://a/", { method: "DELETE" }); return [m.method, m instanceof Mine, m instanceof Request, m.clone() instanceof Request];`,
  fetch: `const r = await fetch(new Request("data:text/plain,hello")); return [r.status, await r.text(), await fetch("nothing").catch((e) => e.name)];`,
};

type Outcome = Record<string, unknown>;

const run = `async (programs, inspect) => {
  const outcome = {};
  for (const [name, body] of Object.entries(programs))
    outcome[name] = await new (async () => {}).constructor("require_inspect", body)(inspect).catch((e) => "failed: " + e);
  return outcome;
}`;

test("the classes of the web are those of Node.js", { timeout: 20_000 }, async () => {
  const { url } = await startFunction(
    `const run = ${run}; exports.main = () => run(${JSON.stringify(programs)}, require("node:util").inspect);`,
  );
  const { inspect } = await import("node:util");
  const native = runInThisContext(run) as (all: object, show: unknown) => Promise<Outcome>;
  const expected = JSON.parse(JSON.stringify(await native(programs, inspect))) as Outcome;
  expect(JSON.stringify(expected)).not.toContain("failed:");
  expect(JSON.parse((await send(url)).body)).toEqual(expected);
});

/** Each is what `fetch(request)` returns for `POST /a/../b?c` with the body "text" and `x-a: 1`. */
const handlers: { name: string; code: string; body: string }[] = [
  {
    name: "its parts",
    code: `[request.method, new URL(request.url).pathname, request.headers.get("x-a"), request.bodyUsed].join()`,
    body: "POST,/b,1,false",
  },
  { name: "its body", code: `(await request.text()) + request.bodyUsed`, body: "texttrue" },
  {
    name: "its bytes",
    code: `String((await request.arrayBuffer()).byteLength + (() => { try { request.clone(); } catch (e) { return e.name; } })())`,
    body: "4TypeError",
  },
  {
    name: "its body, twice",
    code: `(await request.text()) + (await request.text().catch((e) => e.message))`,
    body: "textBody is unusable: Body has already been read",
  },
  {
    name: "a clone",
    code: `(await request.clone().text()) + (await request.text()) + request.bodyUsed`,
    body: "texttexttrue",
  },
  {
    name: "its stream, and then its text",
    code: `String(request.body instanceof ReadableStream) + (await request.text())`,
    body: "truetext",
  },
  {
    name: "a request made of it",
    code: `await new Request(new URL("/x", request.url), request).text()`,
    body: "text",
  },
  {
    name: "one with its headers changed",
    code: `(request.headers.set("x-a", "2"), new Request(request).headers.get("x-a"))`,
    body: "2",
  },
  {
    name: "one that was read before",
    code: `(await request.text(), new Request("http://a/", { method: "PUT", body: request.bodyUsed ? "used" : "not" }).text())`,
    body: "used",
  },
  {
    name: "a form",
    code: `(await new Request(request, { headers: { "content-type": "application/x-www-form-urlencoded" } }).formData()).has("text")`,
    body: "true",
  },
  {
    name: "whether it is one",
    code: `[request instanceof Request, request.constructor === Request, Object.prototype.toString.call(request)].join()`,
    body: "true,true,[object Request]",
  },
];

test.each(handlers)("a request that came in shows $name", async ({ code, body }) => {
  const { url } = await startFunction(
    `export default { async fetch(request) { return new Response(await (${code})); } };`,
  );
  const answer = await send(`${url}/a/../b?c`, {
    method: "POST",
    headers: { "x-a": "1", "content-type": "text/plain" },
    body: "text",
  });
  expect(answer).toMatchObject({ status: 200, body });
});

test("a handler that only answers loads nothing of fetch", async () => {
  const { url } = await startFunction(
    `export default { fetch: (request) => new Response(String(process.moduleLoadList.some((each) => each.includes("undici")))) };`,
  );
  expect((await send(url)).body).toBe("false");
});

test("a proxy hands on what it got, and hands back what it gets", async () => {
  const target = await startFunction(
    `export default { fetch: async (request) => new Response(request.method + await request.text(), { status: 203, headers: { "x-b": request.headers.get("x-a") } }) };`,
  );
  const { url } = await startFunction(
    `export default { fetch: (request) => fetch(new Request("${target.url}/", request)) };`,
  );
  const answer = await send(url, { method: "PUT", headers: { "x-a": "1" }, body: "text" });
  expect(answer).toMatchObject({ status: 203, body: "PUTtext", headers: { "x-b": "1" } });
});
