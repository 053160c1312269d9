import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { echo } from "./testing/echo.ts";
import { send, startFunction } from "./testing/running-function.ts";

const bodies: {
  name: string;
  headers: Record<string, string>;
  body: string | Uint8Array;
  data: unknown;
}[] = [
  {
    name: "JSON",
    headers: { "content-type": "application/json" },
    body: '{"a":1}',
    data: { a: 1 },
  },
  {
    name: "JSON with charset",
    headers: { "content-type": "Application/JSON; charset=utf-8" },
    body: '"ü"',
    data: "ü",
  },
  {
    name: "JSON of a vendor",
    headers: { "content-type": "application/vnd.x+json" },
    body: "[1]",
    data: [1],
  },
  { name: "text", headers: { "content-type": "text/plain" }, body: "hi ü", data: "hi ü" },
  {
    name: "text in another charset",
    headers: { "content-type": "text/plain; charset=iso-8859-1" },
    body: Buffer.from([0xfc]),
    data: "ü",
  },
  {
    name: "a form",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "a=1&b[c]=2&d[]=3&d[]=4&e=5&e=6+7",
    data: { a: "1", b: { c: "2" }, d: ["3", "4"], e: ["5", "6 7"] },
  },
  {
    name: "a hostile form",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "__proto__[x]=1&constructor[prototype][x]=1&a=%ZZ",
    data: { a: "%ZZ" },
  },
  {
    name: "bytes",
    headers: { "content-type": "application/octet-stream" },
    body: Buffer.from([0, 255]),
    data: { bytes: "00ff" },
  },
  { name: "no type", headers: {}, body: "ab", data: { bytes: "6162" } },
  {
    name: "an empty JSON body",
    headers: { "content-type": "application/json" },
    body: "",
    data: "absent",
  },
  {
    name: "gzip",
    headers: { "content-type": "text/plain", "content-encoding": "gzip" },
    body: gzipSync("zipped"),
    data: "zipped",
  },
  {
    name: "brotli",
    headers: { "content-type": "text/plain", "content-encoding": "br" },
    body: brotliCompressSync("zipped"),
    data: "zipped",
  },
  {
    name: "multipart, which stays unread",
    headers: { "content-type": "multipart/form-data; boundary=x" },
    body: "--x--",
    data: "absent",
  },
];

describe("a request's body", () => {
  test("is event.data, by its content type", async () => {
    const { url } = await startFunction(echo);
    for (const { name, headers, body, data } of bodies) {
      const answer = await send(url, { method: "POST", headers, body });
      expect({ name, answer: JSON.parse(answer.body) as unknown }).toEqual({
        name,
        answer: { data },
      });
    }
    expect(JSON.parse((await send(url)).body)).toEqual({ data: "absent" });
  });

  const refused: {
    name: string;
    headers: Record<string, string>;
    body: string | Uint8Array;
    status: number;
    why: RegExp;
  }[] = [
    {
      name: "no JSON",
      headers: { "content-type": "application/json" },
      body: '{"a"',
      status: 400,
      why: /^the request body is not valid JSON: /,
    },
    {
      name: "too large",
      headers: {},
      body: "x".repeat(1024 * 1024 + 1),
      status: 413,
      why: /larger than 1 MB \(FUNC_BODY_MB_LIMIT\)$/,
    },
    {
      name: "too large without a length",
      headers: { "transfer-encoding": "chunked" },
      body: "x".repeat(3 * 1024 * 1024),
      status: 413,
      why: /larger than 1 MB/,
    },
    {
      name: "too large once it is decompressed",
      headers: { "content-encoding": "gzip" },
      body: gzipSync("x".repeat(2 * 1024 * 1024)),
      status: 413,
      why: /larger than 1 MB/,
    },
    {
      name: "no gzip",
      headers: { "content-encoding": "gzip" },
      body: "plain",
      status: 400,
      why: /cannot be decompressed/,
    },
    {
      name: "of an unknown encoding",
      headers: { "content-encoding": "lzw" },
      body: "x",
      status: 415,
      why: /unsupported content encoding lzw/,
    },
    ...["__proto__", "constructor", "gzip, gzip"].map((encoding) => ({
      name: `of the encoding ${encoding}`,
      headers: { "content-encoding": encoding },
      body: "x",
      status: 415,
      why: /unsupported content encoding /,
    })),
    {
      name: "cut short in its compressed form",
      headers: { "content-encoding": "gzip" },
      body: gzipSync("x").subarray(0, -4),
      status: 400,
      why: /cannot be decompressed/,
    },
    {
      name: "of an unknown charset",
      headers: { "content-type": "text/plain; charset=klingon" },
      body: "x",
      status: 415,
      why: /charset klingon/,
    },
    {
      name: "no CloudEvent",
      headers: { "content-type": "application/cloudevents+json" },
      body: '{"specversion":"1.0"}',
      status: 400,
      why: /the CloudEvent has no id/,
    },
  ];
  test("that should be a CloudEvent, and is missing, is refused", async () => {
    const { url } = await startFunction(echo);
    const headers = { "content-type": "application/cloudevents+json" };
    expect(await send(url, { headers })).toMatchObject({
      status: 400,
      body: "the CloudEvent is not a JSON object",
    });
  });

  test("that cannot be read is refused in words, and the Function is not called", async () => {
    const { url } = await startFunction(echo);
    for (const { name, headers, body, status, why } of refused) {
      const answer = await send(url, { method: "POST", headers, body });
      expect({ name, status: answer.status, body: answer.body }).toEqual({
        name,
        status,
        body: expect.stringMatching(why) as string,
      });
    }
    expect((await send(`${url}/metrics`)).body).toContain("\nfunction_calls_total 0\n");
  });

  test("may be as large as REQ_MB_LIMIT says", async () => {
    const { url } = await startFunction(`module.exports.main = (event) => event.data.length;`, {
      REQ_MB_LIMIT: "3",
    });
    expect((await send(url, { method: "POST", body: "x".repeat(2_500_000) })).body).toBe("2500000");
  });
});

describe("the runtime itself answers", () => {
  test("OPTIONS with what a browser asks for, without calling the Function", async () => {
    const { url } = await startFunction(echo);
    const headers = {
      "access-control-request-method": "PUT",
      "access-control-request-headers": "x-a, x-b",
    };
    const answer = await send(`${url}/any`, { method: "OPTIONS", headers });
    expect(answer).toMatchObject({ status: 200, body: "" });
    expect(answer.headers).toMatchObject({
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "PUT",
      "access-control-allow-headers": "x-a, x-b",
    });
    expect((await send(`${url}/metrics`)).body).toContain("\nfunction_calls_total 0\n");
  });

  test("/healthz and /favicon.ico", async () => {
    const { url } = await startFunction(echo);
    expect(await send(`${url}/healthz`)).toMatchObject({ status: 200, body: "OK" });
    expect(await send(`${url}/favicon.ico`)).toMatchObject({ status: 204, body: "" });
  });
});
