/** Answers that no handler should make: somebody waits for each, and the next one on the same connection is whole. */
import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, onTestFinished, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";

const head = `
const { inspect } = require("node:util");
const fail = (error) => { throw error; };
const unshowable = { [inspect.custom]: () => fail("custom") };
const proxy = new Proxy({}, { getPrototypeOf: () => fail("prototype"), get: () => fail("get") });
async function* stream(...chunks) { for (const chunk of chunks) yield chunk === fail ? fail(new Error("chunk")) : chunk; }
const web = (...chunks) => new ReadableStream({ start(to) { for (const chunk of chunks) to.enqueue(chunk); to.close(); } });
`;

/** By what the handler does with its event. */
const failing: Record<string, string> = {
  "an error that cannot be looked at": `() => fail(unshowable)`,
  "a proxy that cannot be asked": `async () => fail(proxy)`,
  "an error with a stack that throws": `() => fail(Object.defineProperty(new Error("a"), "stack", { get: () => fail("stack") }))`,
  "a status that is none": `({ setResponseStatus }) => { setResponseStatus(9999); return "x"; }`,
  "a status that is none, for a stream": `({ setResponseStatus }) => { setResponseStatus(9999); return stream("x"); }`,
  "an interim status": `({ setResponseStatus }) => { setResponseStatus(100); return "x"; }`,
  "a status that switches protocols": `({ setResponseStatus }) => { setResponseStatus(101); return "x"; }`,
  "a reason with a line break": `({ extensions: { response } }) => { response.statusMessage = "a\\r\\nb: c"; return "x"; }`,
  "a reason in emoji, for a stream": `({ extensions: { response } }) => { response.statusMessage = "\\u{1f600}"; return stream("x"); }`,
  "a long length, and an error": `({ setResponseHeader }) => { setResponseHeader("content-length", "100"); fail(new Error("x")); }`,
  "a short length, and an error": `({ setResponseHeader }) => { setResponseHeader("content-length", "3"); fail(new Error("x")); }`,
  "a coding and a lifetime, and an error": `({ setResponseHeader: set }) => { set("content-encoding", "gzip"); set("cache-control", "max-age=600"); fail("x"); }`,
  "a stream that fails at once": `() => stream(fail)`,
  "a stream of numbers": `() => stream(5)`,
  "a stream that is destroyed": `() => { const { Readable } = require("node:stream"); return new Readable({ read() {} }).destroy(); }`,
  "a web stream that fails at once": `() => new Response(new ReadableStream({ start: (to) => to.error(new Error("x")) }))`,
  "a web stream of numbers": `() => new Response(web(5))`,
  "an error as a Response": `() => Response.error()`,
};

const sent: Record<string, { code: string; body: string }> = {
  "a length that is too short": {
    code: `({ setResponseHeader }) => { setResponseHeader("content-length", "3"); return "hällo"; }`,
    body: "hällo",
  },
  "a length that is too long": {
    code: `({ setResponseHeader }) => { setResponseHeader("content-length", "30"); return { a: 1 }; }`,
    body: '{"a":1}',
  },
  "a length of nothing": {
    code: `({ setResponseHeader }) => { setResponseHeader("content-length", "30"); }`,
    body: "",
  },
  "a length that is none": {
    code: `({ extensions: { response } }) => void response.set("content-length", "-3").send("text")`,
    body: "text",
  },
  "a transfer coding that is not ours": {
    code: `({ setResponseHeader }) => { setResponseHeader("transfer-encoding", "gzip"); return "text"; }`,
    body: "text",
  },
  "chunks and a length": {
    code: `({ setResponseHeader: set }) => { set("transfer-encoding", "chunked"); set("content-length", "2"); return "text"; }`,
    body: "text",
  },
  "texts in a web stream": { code: `() => new Response(web("ü"))`, body: "ü" },
  "a second try": {
    code: `({ extensions: { response } }) => {
      response.statusCode = 9999;
      try { response.end("first"); } catch { response.status(200).end("second"); }
    }`,
    body: "second",
  },
};

const handler = (rows: [name: string, code: string][]) =>
  `${head}const rows = new Map([${rows.map(([name, code]) => `[${JSON.stringify(name)}, ${code}]`).join(",\n")}]);
  exports.main = (event, ...rest) => {
    const { q } = event.extensions.request.query;
    return q ? rows.get(q)(event, ...rest) : "whole";
  };`;

/** What comes back for this, and for another request right behind it. */
async function ask(url: string, name: string): Promise<{ status: number; body: string }[]> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const get = (query: string) => `GET /?q=${encodeURIComponent(query)} HTTP/1.1\r\nhost: x\r\n`;
  socket.write(`${get(name)}\r\n${get("")}connection: close\r\n\r\n`);
  const chunks: Buffer[] = [];
  for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk);
  const answers: { status: number; body: string }[] = [];
  for (let rest = Buffer.concat(chunks); rest.length > 0;) {
    const end = rest.indexOf("\r\n\r\n") + 4;
    const text = rest.toString("latin1", 0, end);
    expect(text).not.toMatch(
      /content-length:[^]*transfer-encoding:|transfer-encoding:[^]*content-length:/i,
    );
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? Number.NaN);
    const chunked = /^([0-9a-f]+)\r\n([^]*)\r\n0\r\n\r\n/.exec(
      rest.toString("latin1", end, rest.indexOf("HTTP/", end)),
    );
    const [from, to] = Number.isNaN(length)
      ? [end + (chunked?.[1]?.length ?? 0) + 2, end + (chunked?.[0].length ?? 0) - 7]
      : [end, end + length];
    answers.push({ status: Number(text.slice(9, 12)), body: rest.toString("utf8", from, to) });
    rest = rest.subarray(Number.isNaN(length) ? end + (chunked?.[0].length ?? 0) : to);
  }
  return answers;
}

describe("a handler that answers", () => {
  test("what cannot be sent is 500, and what it has said of it is gone", async () => {
    const { url } = await startFunction(handler(Object.entries(failing)));
    const seen: Record<string, unknown> = {};
    for (const name of Object.keys(failing)) seen[name] = await ask(url, name);
    const body = (name: string) => (name.includes("lifetime") ? "x" : "Internal server error");
    const expected = Object.keys(failing).map((name) => [
      name,
      [
        { status: 500, body: body(name) },
        { status: 200, body: "whole" },
      ],
    ]);
    expect(seen).toEqual(Object.fromEntries(expected));
    const { headers } = await send(
      `${url}/?q=${encodeURIComponent("a coding and a lifetime, and an error")}`,
    );
    expect(headers).toMatchObject({ "content-type": "text/plain; charset=utf-8" });
    expect(headers).not.toHaveProperty("content-encoding");
    expect(headers).not.toHaveProperty("cache-control");
  });

  test("with a wrong length has it corrected", async () => {
    const rows = Object.entries(sent);
    const { url } = await startFunction(handler(rows.map(([name, { code }]) => [name, code])));
    for (const [name, { body }] of rows)
      expect([name, await ask(url, name)]).toEqual([
        name,
        [
          { status: 200, body },
          { status: 200, body: "whole" },
        ],
      ]);
  });

  test("a stream of another length than it says is broken off", async () => {
    const rows = {
      longer: `({ setResponseHeader }) => { setResponseHeader("content-length", "3"); return stream("hel", "lo"); }`,
      shorter: `({ setResponseHeader }) => { setResponseHeader("content-length", "30"); return stream("hel", "lo"); }`,
    };
    const { url, stderr } = await startFunction(handler(Object.entries(rows)));
    const longer = send(`${url}/?q=longer`).catch(({ code }: NodeJS.ErrnoException) => code);
    expect([await longer]).not.toMatchObject([{ body: "hello" }]);
    await expect(send(`${url}/?q=shorter`)).rejects.toThrow(/aborted|hang up|reset/);
    await expect.poll(stderr).toMatch(/content-length of 5 byte\(s\) does not match/);
    expect((await send(url)).body).toBe("whole");
  });

  test("to HEAD may say how long the body would be", async () => {
    const { url } = await startFunction(
      `exports.main = ({ setResponseHeader }) => { setResponseHeader("content-length", "30"); };`,
    );
    const { headers, body } = await send(url, { method: "HEAD" });
    expect([headers["content-length"], body]).toEqual(["30", ""]);
  });

  test("a length and then nothing is 408 with another", async () => {
    const { url } = await startFunction(
      `exports.main = ({ setResponseHeader: set }) => { set("content-length", "300"); return new Promise(() => {}); };`,
      { FUNC_TIMEOUT: "0.2" },
    );
    expect(await send(url)).toMatchObject({ status: 408, body: "Request Timeout" });
  });

  test("by the callback what cannot be sent is 500 too", async () => {
    const { url, stderr } = await startFunction(`const circular = {};
    circular.circular = circular;
    const calls = [[circular], ["x", 9999], ["x", 200, { "a b": "c" }]];
    exports.main = (event, context, send) => void setTimeout(send, 1, ...calls[event.extensions.request.query.n]);`);
    for (const n of [0, 1, 2]) expect(await send(`${url}/?n=${n}`)).toMatchObject({ status: 500 });
    await expect.poll(stderr).toMatch(/sending the handler's response: TypeError: .*circular/);
  });

  test("what fetch got sends the body that it got", async () => {
    const upstream = createServer((_request, response) => {
      response.setHeader("content-encoding", "gzip").setHeader("x-from", "upstream");
      response.end(gzipSync("text ".repeat(1000)));
    });
    upstream.listen(0, "127.0.0.1");
    await once(upstream, "listening");
    onTestFinished(() => void upstream.close());
    const { port } = upstream.address() as AddressInfo;
    const { url } = await startFunction(
      `export default { fetch: () => fetch("http://127.0.0.1:${port}/") };`,
    );
    const { headers, body } = await send(url);
    expect(body).toBe("text ".repeat(1000));
    expect(headers).toMatchObject({ "x-from": "upstream" });
    expect(headers).not.toHaveProperty("content-encoding");
  });
});

test("a client that goes in the middle of a stream is no failure of the handler", async () => {
  const { url, stdout, stderr } = await startFunction(`
  const { Readable } = require("node:stream");
  const pause = () => new Promise((done) => setTimeout(done, 10));
  async function* generate() { try { for (;;) { yield "x"; await pause(); } } finally { console.log("generator over"); } }
  const readable = () => new Readable({
    read() { setTimeout(() => this.push("x"), 10); },
    destroy(error, done) { console.log("readable over"); done(error); },
  });
  const web = () => new Response(new ReadableStream({
    async pull(to) { await pause(); to.enqueue(Buffer.from("x")); },
    cancel() { console.log("web over"); },
  }));
  exports.main = ({ extensions: { request: { query } } }) => ({ generate, readable, web })[query.q]();`);
  for (const [path, over] of Object.entries({
    generate: "generator",
    readable: "readable",
    web: "web",
  })) {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write(`GET /?q=${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
    await once(socket, "data");
    socket.destroy();
    await expect.poll(stdout).toContain(`${over} over`);
  }
  const failures = async () =>
    /failures_total (\d+)/.exec((await send(`${url}/metrics`)).body)?.[1];
  expect(await failures()).toBe("0");
  expect(stderr()).toBe("");
});

test("what cannot be looked at may be thrown beside a request", async () => {
  const { url, stderr } = await startFunction(`${head}
  exports.main = () => {
    setTimeout(() => fail(unshowable));
    setTimeout(() => fail(proxy));
    void Promise.reject(unshowable);
    return "fine";
  };`);
  expect((await send(url)).body).toBe("fine");
  await expect.poll(() => stderr().match(/threw a value that cannot be printed/g)).toHaveLength(3);
  expect((await send(url)).body).toBe("fine");
});
