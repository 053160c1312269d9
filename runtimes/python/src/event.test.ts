import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missingPython, PythonRuntime } from "./testing.ts";

const source = `
import base64, encodings, json

def plain(value):
    if isinstance(value, bytes):
        return "base64:" + base64.b64encode(value).decode()
    return value

def main(event, context):
    request = event["extensions"]["request"]
    if request.path == "/context":
        return context
    if request.path == "/auth":
        return {"auth": request.auth}
    if request.path == "/charsets":
        return {"names": len(encodings._cache)}
    if request.path == "/request":
        return {
            "method": request.method, "path": request.path, "url": request.url, "query": dict(request.query),
            "all": request.query.getall("a"), "dotted": request.query.a, "host": request.get_header("host") != None,
            "header": request.headers["X-Custom"], "json": request.json, "body": request.body.read().decode(),
            "again": request.body.read().decode(), "forms": dict(request.forms), "cookie": request.get_cookie("c"),
            "files": {n: [f.filename, f.file.read().decode()] for n, f in request.files.items()},
            "type": request.content_type, "length": request.content_length, "remote": request.remote_addr,
            "copy": request.copy().method, "auth": request.auth, "wsgi": request.environ["HTTP_X_CUSTOM"],
        }
    found = {key: plain(event[key]) for key in event if key != "extensions"}
    found["has data"] = "data" in event
    found["missing"] = event.get("no such key", "default")
    return found
`;

const json = { "content-type": "application/json" };

interface Row {
  name: string;
  headers?: Record<string, string>;
  body?: string;
  event: Record<string, unknown>;
}

const binary = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s", "ce-type": "t" };

const rows: Row[] = [
  { name: "no body", event: { "has data": false, missing: "default" } },
  { name: "JSON", headers: json, body: '{"a":1}', event: { "has data": true, data: { a: 1 } } },
  {
    name: "JSON with a charset",
    headers: { "content-type": "application/json; charset=utf-8" },
    body: "[1]",
    event: { data: [1] },
  },
  { name: "JSON null", headers: json, body: "null", event: { "has data": true, data: null } },
  {
    name: "a body that is not the JSON it says",
    headers: json,
    body: "{",
    event: { "has data": false },
  },
  {
    name: "text",
    headers: { "content-type": "text/plain" },
    body: "hi",
    event: { data: "hi" },
  },
  {
    name: "a structured event",
    headers: { "content-type": "application/cloudevents+json; charset=utf-8" },
    body: JSON.stringify({
      specversion: "1.0",
      id: "1",
      source: "here",
      type: "t",
      time: "2020-01-01T00:00:00Z",
      eventtypeversion: "v1",
      datacontenttype: "application/json",
      data: { a: 1 },
      other: "x",
    }),
    event: {
      "ce-specversion": "1.0",
      "ce-id": "1",
      "ce-source": "here",
      "ce-type": "t",
      "ce-time": "2020-01-01T00:00:00Z",
      "ce-eventtypeversion": "v1",
      "ce-datacontenttype": "application/json",
      "ce-other": "x",
      data: { a: 1 },
    },
  },
  {
    name: "a structured event with bytes",
    headers: { "content-type": "application/cloudevents+json" },
    body: JSON.stringify({
      specversion: "1.0",
      id: "1",
      source: "s",
      type: "t",
      data_base64: "AAE=",
    }),
    event: { data: "base64:AAE=", "ce-time": null },
  },
  {
    name: "a binary event",
    headers: {
      ...json,
      "ce-specversion": "1.0",
      "ce-id": "1",
      "ce-source": "s",
      "ce-type": "t%20t",
      "ce-subject": "about",
    },
    body: '{"a":1}',
    event: {
      "ce-type": "t t",
      "ce-subject": "about",
      "ce-datacontenttype": "application/json",
      data: { a: 1 },
    },
  },
  {
    name: "a binary event with text",
    headers: { ...binary, "content-type": "text/plain" },
    body: "hi",
    event: { data: "hi" },
  },
  {
    name: "a binary event with text in another charset",
    headers: { ...binary, "content-type": 'text/plain; Charset="ISO-8859-1"' },
    body: "\u00e4",
    event: { data: "\u00c3\u00a4" },
  },
  {
    name: "what has a type, and is no event",
    headers: { ...json, "ce-type": "t" },
    body: "[1]",
    event: { data: [1] },
  },
  {
    name: "a batch",
    headers: { "content-type": "application/cloudevents-batch+json" },
    body: JSON.stringify([{ specversion: "1.0", id: "1", source: "s", type: "t", data: 5 }]),
    event: { data: [{ specversion: "1.0", id: "1", source: "s", type: "t", data: 5 }] },
  },
];

describe.skipIf(missingPython)("the event", () => {
  let runtime: PythonRuntime;
  beforeAll(async () => {
    runtime = await PythonRuntime.start(source, { FUNC_TIMEOUT: "12.5", REQ_MB_LIMIT: "1" });
  });
  afterAll(() => runtime.stop());

  test.each(rows)("of $name", async ({ headers = {}, body, event }) => {
    const call = body === undefined ? {} : { method: "POST", body };
    expect(await runtime.json("/", { ...call, headers })).toMatchObject(event);
  });

  test.each([
    ["application/cloudevents+json", "{", {}],
    ["application/cloudevents+json", '{"specversion":"1.0","id":"1","source":"s"}', {}],
    ["application/cloudevents+json", "[1]", {}],
    ["application/cloudevents-batch+json", "{}", {}],
    [
      "application/cloudevents+json",
      '{"specversion":"1.0","id":"1","source":"s","type":"t","data_base64":"!"}',
      {},
    ],
    ["application/json", "{", { "ce-id": "1", "ce-source": "s", "ce-type": "t" }],
    ["application/json", "{}", { "ce-source": "s", "ce-type": "t" }],
    ["application/json", "{}", { "ce-specversion": "1.0", "ce-id": "1", "ce-type": "t" }],
    ["application/json", "{}", { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "s" }],
  ])("a malformed one (%s, %s) is refused", async (type, body, headers) => {
    const answer = await runtime.call("/", {
      method: "POST",
      body,
      headers: { "content-type": type, ...headers },
    });
    expect(answer.status).toBe(400);
    expect(answer.body).toMatch(/^malformed CloudEvent: /);
  });

  test.each(["PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"])(
    "%s reaches the handler",
    async (method) => {
      expect((await runtime.call("/", { method })).status).toBe(200);
    },
  );

  test("the context has the Function's name, namespace, runtime and limits", async () => {
    expect(await runtime.json("/context")).toEqual({
      "function-name": "hello",
      namespace: "space",
      runtime: "python312",
      timeout: 12.5,
      "memory-limit": null,
      "body-size-limit": 1,
    });
  });

  test("the request has what Bottle's has", async () => {
    const found = await runtime.json("/request?a=1&a=2%20x", {
      method: "POST",
      body: '{"b": 2}',
      headers: {
        ...json,
        "x-custom": "yes",
        cookie: "c=d",
        "x-forwarded-for": "1.2.3.4, 5.6.7.8",
        authorization: `Basic ${btoa("me:secret")}`,
      },
    });
    expect(found).toEqual({
      method: "POST",
      path: "/request",
      url: `http://127.0.0.1:${runtime.port}/request?a=1&a=2%20x`,
      query: { a: "2 x" },
      all: ["1", "2 x"],
      dotted: "2 x",
      host: true,
      header: "yes",
      json: { b: 2 },
      body: '{"b": 2}',
      again: '{"b": 2}',
      forms: {},
      cookie: "d",
      files: {},
      type: "application/json",
      length: 8,
      remote: "1.2.3.4",
      copy: "POST",
      auth: ["me", "secret"],
      wsgi: "yes",
    });
  });

  test("forms and uploads are parsed", async () => {
    const form = { "content-type": "application/x-www-form-urlencoded", "x-custom": "" };
    expect(
      await runtime.json("/request", { method: "POST", body: "a=1&b=%C3%A4+x", headers: form }),
    ).toMatchObject({
      forms: { a: "1", b: "ä x" },
      json: null,
    });
    const parts = [
      '--XX\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n',
      '--XX\r\nContent-Disposition: form-data; name="f"; filename="../x.txt"\r\nContent-Type: text/plain\r\n\r\nfile\r\n',
      "--XX--\r\n",
    ];
    const multipart = { "content-type": "multipart/form-data; boundary=XX", "x-custom": "" };
    expect(
      await runtime.json("/request", { method: "POST", body: parts.join(""), headers: multipart }),
    ).toMatchObject({
      forms: { a: "1" },
      files: { f: ["x.txt", "file"] },
    });
  });

  test("a user and password that are none are none", async () => {
    const answer = (authorization: string) =>
      runtime.json("/auth", { headers: { authorization: `Basic ${authorization}` } });
    expect(await answer("YTpi")).toEqual({ auth: ["a", "b"] });
    expect(await answer("YT")).toEqual({ auth: null });
    expect(await answer("\u00ff")).toEqual({ auth: null });
  });

  test("charsets that are none are not remembered", async () => {
    const remembered = () => runtime.json("/charsets");
    const before = await remembered();
    for (const name of ["none1", "none2", "x".repeat(9000)]) {
      const headers = { ...binary, "content-type": `text/plain; charset=${name}` };
      expect((await runtime.call("/", { method: "POST", body: "hi", headers })).status).toBe(415);
    }
    expect(await remembered()).toEqual(before);
  });

  test.each(["hex", "idna", "undefined", "unknown"])(
    "text in %s, which is no charset, is refused",
    async (charset) => {
      const type = { "content-type": `text/plain; charset=${charset}` };
      const refused = { status: 415, body: `unsupported charset ${charset}\n` };
      for (const headers of [type, { ...binary, ...type }])
        expect(await runtime.call("/", { method: "POST", body: "hi", headers })).toMatchObject(
          refused,
        );
    },
  );

  test("invalid JSON asked for as JSON is the client's error", async () => {
    const answer = await runtime.call("/request", {
      method: "POST",
      body: "{",
      headers: { ...json, "x-custom": "" },
    });
    expect(answer.status).toBe(400);
  });
});

test.skipIf(missingPython).each(["def", "async def"])(
  "events and requests of a %s handler carry the caller's trace",
  async (def) => {
    const seen: { headers: Record<string, unknown>; body: string }[] = [];
    const publisher = createServer((request, response) => {
      let body = "";
      request.on("data", (data) => (body += data));
      request.on("end", () => {
        seen.push({ headers: request.headers, body });
        response.writeHead(204).end();
      });
    }).listen(0, "127.0.0.1");
    await once(publisher, "listening");
    publisher.unref();
    const url = `http://127.0.0.1:${(publisher.address() as AddressInfo).port}/publish`;
    await using runtime = await PythonRuntime.start(
      `
import urllib.request
${def} main(event, context):
    response = event.emitCloudEvent("order.created", "shop", {"n": 1}, {"subject": "s"})
    urllib.request.urlopen("${url}").close()
    with event.tracer.start_as_current_span("work") as span:
        span.set_attribute("a", 1)
    return {"status": response.status_code, "headers": event.tracer.headers()}
`,
      { PUBLISHER_PROXY_ADDRESS: url },
    );
    const trace = "0af7651916cd43dd8448eb211c80319c";
    const answer = await runtime.json("/", {
      headers: { traceparent: `00-${trace}-b7ad6b7169203331-01` },
    });
    expect(answer).toMatchObject({ status: 204, headers: { "x-b3-traceid": trace } });
    expect(seen).toHaveLength(2);
    for (const { headers } of seen) {
      expect(headers["traceparent"]).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
      expect(headers).toMatchObject({ "x-b3-traceid": trace, "x-b3-sampled": "1" });
    }
    expect(seen[0]?.headers["content-type"]).toBe("application/cloudevents+json");
    expect(JSON.parse(seen[0]?.body ?? "")).toMatchObject({
      specversion: "1.0",
      type: "order.created",
      source: "shop",
      subject: "s",
      data: { n: 1 },
      datacontenttype: "application/json",
    });
  },
);
