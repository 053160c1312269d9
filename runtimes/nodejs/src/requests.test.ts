import { brotliCompressSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";

/** Answers with what it was given, as JSON that shows types. */
const echo = `
const show = (value) => value === undefined ? "absent" : Buffer.isBuffer(value) ? { bytes: value.toString("hex") } : value;
module.exports = { main: (event) => {
  const { data, tracer, extensions, ...rest } = event;
  const attributes = Object.fromEntries(Object.entries(rest).filter(([, value]) => typeof value !== "function"));
  return { data: show(data), ...attributes };
} };`;

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
      why: /^the request's body is no JSON: /,
    },
    {
      name: "too large",
      headers: {},
      body: "x".repeat(1024 * 1024 + 1),
      status: 413,
      why: /larger than 1 MB \(REQ_MB_LIMIT\)$/,
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
      why: /encoding lzw is not known/,
    },
    ...["__proto__", "constructor", "gzip, gzip"].map((encoding) => ({
      name: `of the encoding ${encoding}`,
      headers: { "content-encoding": encoding },
      body: "x",
      status: 415,
      why: /encoding .* is not known/,
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
      body: "the CloudEvent is no JSON object",
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

describe("a CloudEvent", () => {
  const attributes = {
    specversion: "1.0",
    id: "1",
    source: "/here",
    type: "order.created",
    subject: "s",
    eventtypeversion: "v1",
  };
  const prefixed = Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value]),
  );

  test("in binary mode has its attributes from headers", async () => {
    const { url } = await startFunction(echo);
    const headers = { ...prefixed, "ce-subject": "%C3%BC", "content-type": "application/json" };
    const { body } = await send(url, { method: "POST", headers, body: '{"a":1}' });
    expect(JSON.parse(body)).toEqual({
      data: { a: 1 },
      ...prefixed,
      "ce-subject": "ü",
      "ce-datacontenttype": "application/json",
    });
  });

  test("in structured mode is taken apart", async () => {
    const { url } = await startFunction(echo);
    const post = async (event: object) => {
      const headers = { "content-type": "application/cloudevents+json; charset=utf-8" };
      return JSON.parse(
        (await send(url, { method: "POST", headers, body: JSON.stringify(event) })).body,
      ) as unknown;
    };
    expect(await post({ ...attributes, data: { a: 1 } })).toEqual({ data: { a: 1 }, ...prefixed });
    expect(await post({ ...attributes, data_base64: "AP8=" })).toEqual({
      data: { bytes: "00ff" },
      ...prefixed,
    });
  });

  const malformed: { name: string; headers: Record<string, string>; body: string }[] = [
    { name: "binary without an id", headers: { ...prefixed, "ce-id": "" }, body: "" },
    { name: "of an unknown version", headers: { ...prefixed, "ce-specversion": "7" }, body: "" },
    ...["id", "type", "source"].map((name) => {
      const headers: Record<string, string> = { ...prefixed };
      delete headers[`ce-${name}`];
      return { name: `binary, and there is no ${name}`, headers, body: "" };
    }),
    ...[
      { id: null },
      { type: 5 },
      { source: "" },
      { specversion: null },
      { specversion: 1 },
      { data_base64: "not base64!" },
      { data_base64: 5 },
    ].map((wrong) => ({
      name: `structured, with ${JSON.stringify(wrong)}`,
      headers: { "content-type": "application/cloudevents+json" },
      body: JSON.stringify({ ...attributes, ...wrong }),
    })),
    {
      name: "a batch that is no list",
      headers: { "content-type": "application/cloudevents-batch+json" },
      body: "{}",
    },
    {
      name: "a batch with one that is none",
      headers: { "content-type": "application/cloudevents-batch+json" },
      body: JSON.stringify([attributes, { id: "2" }]),
    },
  ];
  test("that is malformed is refused in any mode", async () => {
    const { url } = await startFunction(echo);
    for (const { name, headers, body } of malformed) {
      const { status } = await send(url, { method: "POST", headers, body });
      expect({ name, status }).toEqual({ name, status: 400 });
    }
  });

  test("batch is a list of events", async () => {
    const { url } = await startFunction(echo);
    const headers = { "content-type": "application/cloudevents-batch+json" };
    const { body } = await send(url, {
      method: "POST",
      headers,
      body: JSON.stringify([attributes]),
    });
    expect(JSON.parse(body)).toEqual({ data: [attributes] });
  });

  test("is published structured, and what comes back is the result", async () => {
    const target = await startFunction(`module.exports.main = (event) => {
      if (event["ce-type"] === "refuse") { event.setResponseStatus(503); return "no"; }
      return { type: event["ce-type"], source: event["ce-source"], id: event["ce-id"], data: event.data,
        contentType: event["ce-datacontenttype"], extra: event["ce-extra"] };
    };`);
    const { url } = await startFunction(
      `module.exports.main = async (event) => {
        const sent = await event.emitCloudEvent("made", "me", { n: 1 }, { extra: "x", id: "7" });
        const text = await event.emitCloudEvent("made", "me", "words");
        const built = event.buildResponseCloudEvent("9", "answer", { a: 1 });
        const published = await event.publishCloudEvent(built);
        const refused = await event.emitCloudEvent("refuse", "me", {}).catch((error) => error.response.status);
        return { sent: sent.data, contentType: text.data.contentType, published: published.data, refused };
      };`,
      { PUBLISHER_PROXY_ADDRESS: `${target.url}/publish` },
    );
    const answer = await send(url, { headers: prefixed });
    expect(JSON.parse(answer.body)).toEqual({
      sent: {
        type: "made",
        source: "me",
        id: "7",
        data: { n: 1 },
        contentType: "application/json",
        extra: "x",
      },
      contentType: "text/plain",
      published: {
        type: "answer",
        source: "/here",
        id: "9",
        data: { a: 1 },
        contentType: "application/json",
      },
      refused: 503,
    });
  });
});

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
