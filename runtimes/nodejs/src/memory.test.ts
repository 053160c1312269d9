/** Clause 6.1 under a real limit: what is accepted is answered, and what does not fit is refused before it ends the process. */
import { limitMemory, noMemoryLimits } from "@spry/test-kit";
import { describe, expect, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";

const handlers = {
  main: `module.exports.main = async (event) => {
    const request = event.extensions.request;
    switch (request.path) {
      case "/echo": return request.rawBody;
      case "/data": return { data: event.data };
      case "/wait": return new Promise((done) => setTimeout(done, 500, "waited"));
    }
    return typeof event.data;
  };`,
  fetch: `exports.default = { async fetch(request) {
    switch (new URL(request.url).pathname) {
      case "/echo": return new Response(await request.arrayBuffer());
      case "/data": return Response.json(await request.json());
      case "/wait": {
        const bytes = await request.bytes();
        await new Promise((done) => setTimeout(done, 500));
        return new Response(bytes.length > 0 ? "waited" : "");
      }
    }
    return new Response(typeof (await request.text()));
  } };`,
};

const types = { bytes: "application/octet-stream", json: "application/json", text: "text/plain" };
const megabytes = (count: number) => "x".repeat(count * 1e6);
const post = (kind: keyof typeof types, body: string) => ({
  method: "POST",
  headers: { "content-type": types[kind] },
  body,
});
/** Small on the wire, twenty times as large as objects. */
const lists = (count: number) => `[${"[],".repeat(Math.floor((count * 1e6) / 3) - 2)}[]]`;
const records = (count: number) =>
  JSON.stringify(
    Array.from({ length: count * 14_000 }, (_, i) => ({ id: i, name: `name ${i}`, tags: ["a"] })),
  );

const accepted: [name: string, path: string, call: ReturnType<typeof post>][] = [
  ["bytes", "/echo", post("bytes", megabytes(16))],
  ["JSON of one long text", "/data", post("json", `{"a":"${megabytes(5)}"}`)],
  ["JSON of many records", "/data", post("json", records(1))],
  ["text", "/", post("text", megabytes(6))],
];
const refused: [name: string, path: string, call: ReturnType<typeof post>][] = [
  ["bytes that need too much", "/echo", post("bytes", megabytes(45))],
  ["JSON that becomes twenty times as large", "/data", post("json", lists(12))],
  ["JSON of one text that is too long", "/data", post("json", `{"a":"${megabytes(25)}"}`)],
];

/** As the presets' environment has it. */
const env = { NODE_OPTIONS: "--max-old-space-size=76 --max-semi-space-size=4" };

describe.skipIf(noMemoryLimits).each(Object.entries(handlers))("%s, of 128 MiB", (_, code) => {
  test("answers or refuses each body, and its process lives on", async () => {
    await using group = limitMemory(128);
    const large = { ...env, FUNC_BODY_MB_LIMIT: "100" };
    const running = await startFunction(code, large, group.prefix);
    for (const [name, path, call] of accepted) {
      const { status } = await send(running.url + path, call);
      expect({ name, status }).toEqual({ name, status: 200 });
    }
    for (const [name, path, call] of refused)
      expect({ name, ...(await send(running.url + path, call)) }).toMatchObject({
        name,
        status: 413,
        body: "the request body is too large for the memory that the Function has left",
      });
    const echo = await send(`${running.url}/echo`, post("bytes", megabytes(12)));
    expect(echo.status).toBe(200);
    expect({ code: running.process.exitCode, kills: group.kills() }).toEqual({
      code: null,
      kills: 0,
    });
  });

  test.each([
    ["a hundred of 1 MB", "/wait", 100, post("bytes", megabytes(1))],
    ["thirty of JSON that becomes twenty times as large", "/data", 30, post("json", lists(1))],
  ])("%s at once are answered or refused", async (_, path, count, call) => {
    await using group = limitMemory(128);
    const running = await startFunction(code, env, group.prefix);
    const answers = await Promise.all(
      Array.from({ length: count }, () => send(running.url + path, call)),
    );
    const statuses = new Set(answers.map(({ status }) => status));
    expect(statuses).toContain(200);
    expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([]);
    for (const { headers, status } of answers)
      expect(headers["retry-after"]).toBe(status === 503 ? "1" : undefined);
    expect({ code: running.process.exitCode, kills: group.kills() }).toEqual({
      code: null,
      kills: 0,
    });
  });
});

test.skipIf(noMemoryLimits)(
  "a client that asks before it sends more than there is room for need not send it",
  async () => {
    await using group = limitMemory(128);
    const large = { ...env, FUNC_BODY_MB_LIMIT: "100" };
    const running = await startFunction(handlers.main, large, group.prefix);
    const headers = { expect: "100-continue", "content-length": "50000000" };
    const socket = (await import("node:net")).connect(Number(new URL(running.url).port));
    const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`POST / HTTP/1.1\r\nhost: a\r\n${head.join("")}\r\n`);
    let answer = "";
    for await (const chunk of socket) answer += String(chunk);
    expect(answer).toMatch(/^HTTP\/1.1 413 /);
  },
);

test.skipIf(noMemoryLimits)("a stream that the handler lets go by may be any size", async () => {
  await using group = limitMemory(128);
  const code = `exports.default = { async fetch(request) {
    let size = 0;
    for await (const chunk of request.body) size += chunk.length;
    return new Response(String(size));
  } };`;
  const large = { ...env, FUNC_BODY_MB_LIMIT: "400" };
  const running = await startFunction(code, large, group.prefix);
  const answer = await send(running.url, post("bytes", megabytes(200)));
  expect(answer).toMatchObject({ status: 200, body: "200000000" });
});
