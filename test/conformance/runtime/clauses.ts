/** The clauses of docs/runtime-contract.md that one request and its answer can show. */

export type Language = "nodejs" | "python";

export interface Clause {
  /** As the document numbers it. */
  clause: string;
  name: string;
  /** The handler in each language that the clause holds for. */
  handlers: Partial<Record<Language, string>>;
  /** Only for runtimes with `main(event, context)`, or only for those with `main(request, response)`. */
  api?: "event" | "request";
  env?: Record<string, string>;
  request?: {
    path?: string;
    method?: string;
    headers?: Record<string, string>;
    body?: string | Buffer;
  };
  answer: {
    status?: number;
    body?: string | RegExp;
    json?: unknown;
    headers?: Record<string, string | undefined>;
  };
}

const hello = {
  nodejs: `exports.main = () => "hello";`,
  python: `def main(event, context): return "hello"`,
};
const data = {
  nodejs: `exports.main = (event) => ({ data: event.data ?? null });`,
  python: `def main(event, context): return {"data": event.get("data")}`,
};
const attributes = {
  nodejs: `exports.main = (event) => [event["ce-type"], event["ce-source"], event["ce-id"], event["ce-subject"], event.data];`,
  python: `
def main(event, context):
    return {"all": [event["ce-type"], event["ce-source"], event["ce-id"], event["ce-subject"], event["data"]]}`,
};
const json = { "content-type": "application/json" };
const binary = { "ce-specversion": "1.0", "ce-id": "1", "ce-type": "made", "ce-source": "/me" };
const event = { specversion: "1.0", id: "1", type: "made", source: "/me", subject: "ü" };
const structured = { "content-type": "application/cloudevents+json" };
const batch = { "content-type": "application/cloudevents-batch+json" };
const post = (headers: Record<string, string>, body: string | Buffer) => ({
  method: "POST",
  headers,
  body,
});
/** Bytes as `bytes 0a1b`; what is absent as `absent`. */
const shown = {
  nodejs: `exports.main = ({ data = "absent" }) => ({ data: Buffer.isBuffer(data) ? "bytes " + data.toString("hex") : data });`,
  python: `
def main(event, context):
    data = event.get("data", "absent")
    return {"data": "bytes " + data.hex() if isinstance(data, bytes) else data}`,
};
const mark = Buffer.from([0xef, 0xbb, 0xbf]);
const marked = (text: string) => Buffer.concat([mark, Buffer.from(text)]);
const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, "utf16le");
const typed = (type: string) => ({ "content-type": type });
const form = "application/x-www-form-urlencoded";
const latin1 = Buffer.from("\u00fc", "latin1");
/** What a body is, by its content type; the same in both languages, also in an event. */
const contents: [
  name: string,
  headers: Record<string, string>,
  body: string | Buffer,
  data: unknown,
][] = [
  ["JSON with a byte order mark", typed("application/json"), marked('{"a":"ü"}'), { a: "ü" }],
  ["+json with a byte order mark", typed("application/x+json"), marked("[1]"), [1]],
  ["text", typed("text/plain"), "ü", "ü"],
  ["text with a byte order mark", typed("text/csv"), marked("a;b"), "a;b"],
  ["text with two of them", typed("text/plain"), marked("\ufeffa"), "\ufeffa"],
  ["a byte order mark and no text", typed("text/plain"), mark, ""],
  ["text in Latin 1", typed("text/plain; charset=ISO-8859-1"), latin1, "ü"],
  ["text in UTF-16", typed("text/plain; charset=utf-16"), utf16("ü"), "ü"],
  ["text whose mark says UTF-16", typed("text/plain"), utf16("ü"), "ü"],
  [
    "text whose mark says UTF-8, whatever its charset",
    typed("text/plain; charset=latin1"),
    marked("ü"),
    "ü",
  ],
  ["text with what is no character", typed("text/plain"), Buffer.from([0x61, 0xff]), "a\ufffd"],
  [
    "JSON in UTF-16",
    typed("application/json; charset=utf-16le"),
    Buffer.from('"ü"', "utf16le"),
    "ü",
  ],
  ["a form", typed(form), "a=1&b=2&b=3&c=%C3%BC+d", { a: "1", b: ["2", "3"], c: "ü d" }],
  ["a form with a byte order mark", typed(form), marked("a=1"), { a: "1" }],
  ["bytes", typed("application/octet-stream"), Buffer.from([0, 255]), "bytes 00ff"],
  ["bytes that begin like a mark", typed("application/pdf"), marked("a"), "bytes efbbbf61"],
  ["XML", typed("application/xml"), "<a/>", "bytes 3c612f3e"],
];
const nodejs = (code: string) => ({ nodejs: code });

export const clauses: Clause[] = [
  {
    clause: "1.1",
    name: "main of handler",
    handlers: hello,
    api: "event",
    answer: { body: "hello" },
  },
  {
    clause: "1.1",
    name: "another name",
    handlers: {
      nodejs: `exports.run = () => "ran";`,
      python: `def run(event, context): return "ran"`,
    },
    api: "event",
    env: { HANDLER_FUNC_NAME: "run" },
    answer: { body: "ran" },
  },
  {
    clause: "1.2",
    name: "ES module by its syntax",
    handlers: nodejs(`export const main = async () => "module";`),
    api: "event",
    answer: { body: "module" },
  },
  {
    clause: "1.3",
    name: "TypeScript",
    handlers: nodejs(`export const main = (event: { data?: string }): string => "typed";`),
    api: "event",
    answer: { body: "typed" },
  },
  {
    clause: "2.1",
    name: "health",
    handlers: hello,
    api: "event",
    request: { path: "/healthz" },
    answer: { body: "OK" },
  },
  {
    clause: "2.2",
    name: "metrics",
    handlers: hello,
    api: "event",
    request: { path: "/metrics" },
    answer: { body: /^# TYPE function_calls_total counter$/m },
  },
  {
    clause: "2.3",
    name: "favicon",
    handlers: hello,
    api: "event",
    request: { path: "/favicon.ico" },
    answer: { status: 204, body: "" },
  },
  {
    clause: "2.4",
    name: "preflight",
    handlers: nodejs(hello.nodejs),
    request: {
      method: "OPTIONS",
      headers: { "access-control-request-method": "PUT", "access-control-request-headers": "x-a" },
    },
    answer: {
      body: "",
      headers: { "access-control-allow-methods": "PUT", "access-control-allow-headers": "x-a" },
    },
  },
  {
    clause: "2.5",
    name: "every origin",
    handlers: nodejs(hello.nodejs),
    api: "event",
    answer: { headers: { "access-control-allow-origin": "*" } },
  },
  {
    clause: "2.6",
    name: "no software named",
    handlers: hello,
    api: "event",
    answer: { headers: { server: undefined, "x-powered-by": undefined } },
  },
  {
    clause: "3.1",
    name: "JSON",
    handlers: data,
    api: "event",
    request: post(json, '{"a":[1]}'),
    answer: { json: { data: { a: [1] } } },
  },
  {
    clause: "3.1",
    name: "no body",
    handlers: data,
    api: "event",
    answer: { json: { data: null } },
  },
  ...contents.flatMap(([name, headers, body, expected]): Clause[] => {
    const row = { handlers: shown, api: "event" as const, answer: { json: { data: expected } } };
    const carried = { ...binary, ...headers };
    const clause = name.includes("mark") || name.includes("UTF") ? "3.2" : "3.1";
    return [
      { clause, name, ...row, request: post(headers, body) },
      { clause, name: `${name}, in an event`, ...row, request: post(carried, body) },
    ];
  }),
  {
    clause: "3.1",
    name: "bytes without a type",
    handlers: shown,
    api: "event",
    request: post({}, "ab"),
    answer: { json: { data: "bytes 6162" } },
  },
  {
    clause: "3.1",
    name: "JSON without a type, in an event",
    handlers: shown,
    api: "event",
    request: post(binary, marked('{"a":1}')),
    answer: { json: { data: { a: 1 } } },
  },
  {
    clause: "3.1",
    name: "other data without a type, in an event",
    handlers: shown,
    api: "event",
    request: post(binary, "ab"),
    answer: { json: { data: "bytes 6162" } },
  },
  {
    clause: "3.1",
    name: "a form with files",
    handlers: shown,
    api: "event",
    request: post(typed("multipart/form-data; boundary=x"), "--x--\r\n"),
    answer: { json: { data: "absent" } },
  },
  {
    clause: "3.2",
    name: "a structured event with a byte order mark",
    handlers: shown,
    api: "event",
    request: post(structured, marked(JSON.stringify({ ...event, data: "ü" }))),
    answer: { json: { data: "ü" } },
  },
  {
    clause: "3.2",
    name: "a batch with a byte order mark",
    handlers: shown,
    api: "event",
    request: post(batch, marked("[]")),
    answer: { json: { data: [] } },
  },
  ...["text/plain", "application/json", form].map((type): Clause => ({
    clause: "3.2",
    name: `${type} in a charset that does not exist`,
    handlers: shown,
    api: "event",
    request: post(typed(`${type}; charset=klingon`), "1"),
    answer: { status: 415, body: /^unsupported charset klingon\n?$/ },
  })),
  {
    clause: "3.2",
    name: "JSON with bytes that are no characters",
    handlers: nodejs(shown.nodejs),
    api: "event",
    request: post(json, Buffer.from([0x22, 0xff, 0x22])),
    answer: { status: 400 },
  },
  {
    clause: "3.1",
    name: "a form whose names are nested",
    handlers: nodejs(data.nodejs),
    api: "event",
    request: post({ "content-type": "application/x-www-form-urlencoded" }, "a=1&b[c]=2"),
    answer: { json: { data: { a: "1", b: { c: "2" } } } },
  },
  {
    clause: "3.3",
    name: "no JSON",
    handlers: nodejs(data.nodejs),
    request: post(json, '{"a"'),
    answer: { status: 400 },
  },
  {
    clause: "3.4",
    name: "the request",
    handlers: {
      nodejs: `exports.main = ({ extensions: { request } }) => request.method + request.path + request.query.q + request.get("X-A");`,
      python: `
def main(event, context):
    request = event["extensions"]["request"]
    return request.method + request.path + request.query["q"] + request.headers["X-A"]`,
    },
    api: "event",
    request: { path: "/a/b?q=1", headers: { "x-a": "2" } },
    answer: { body: "GET/a/b12" },
  },
  {
    clause: "3.5",
    name: "context",
    handlers: {
      nodejs: `exports.main = (event, context) => [context["function-name"], context.namespace, context.timeout];`,
      python: `def main(event, context): return {"all": [context["function-name"], context["namespace"], context["timeout"]]}`,
    },
    api: "event",
    env: { FUNC_TIMEOUT: "30" },
    answer: { body: /\["hello", ?"default", ?30(\.0)?\]/ },
  },
  {
    clause: "3.6",
    name: "signal",
    handlers: nodejs(
      `exports.main = (event, { signal }) => signal instanceof AbortSignal && !signal.aborted;`,
    ),
    api: "event",
    answer: { body: "true" },
  },
  {
    clause: "3.7",
    name: "callback",
    handlers: nodejs(
      `exports.main = (event, context, send) => { setTimeout(send, 5, "late", 202, { "x-a": "1" }); };`,
    ),
    api: "event",
    answer: { status: 202, body: "late", headers: { "x-a": "1" } },
  },
  {
    clause: "3.8",
    name: "status, type and header",
    handlers: nodejs(`module.exports = { main: function (event, context) {
      event.setResponseStatus(201); event.setResponseContentType("text/html"); event.setResponseHeader("x-a", "1");
      return "<p>"; } }`),
    api: "event",
    answer: {
      status: 201,
      body: "<p>",
      headers: { "content-type": "text/html; charset=utf-8", "x-a": "1" },
    },
  },
  {
    clause: "3.8",
    name: "a status alone, by the response",
    handlers: nodejs(`exports.main = (event) => { event.extensions.response.status(400); };`),
    api: "event",
    answer: { status: 400, body: "" },
  },
  {
    clause: "3.4",
    name: "the request, as Express' users know it",
    handlers: nodejs(`exports.main = async ({ extensions: { request: req, response: res } }) => {
      const { a } = req.body;
      res.set({ "X-A": "1" }).cookie("c", "d").status(202).json({
        a, is: req.is("json"), accepts: req.accepts("html", "json"), query: req.query, params: req.params[0],
        ip: typeof req.ip, hostname: req.hostname, xhr: req.xhr, original: req.originalUrl }); };`),
    api: "event",
    request: {
      ...post({ ...json, accept: "application/json", host: "me.local:80" }, '{"a":1}'),
      path: "/x?b[c]=2&d=3&d=4",
    },
    answer: {
      status: 202,
      headers: { "x-a": "1", "content-type": "application/json; charset=utf-8" },
      json: {
        a: 1,
        is: "json",
        accepts: "json",
        query: { b: { c: "2" }, d: ["3", "4"] },
        params: "/x",
        ip: "string",
        hostname: "me.local",
        xhr: false,
        original: "/x?b[c]=2&d=3&d=4",
      },
    },
  },
  {
    clause: "3.5",
    name: "all of the context",
    handlers: nodejs(
      `exports.main = (event, context) => ({ ...context, runtime: /^nodejs\\d\\d$/.test(context.runtime) });`,
    ),
    api: "event",
    env: { REQ_MB_LIMIT: "5" },
    answer: {
      json: {
        "function-name": "hello",
        runtime: true,
        namespace: "default",
        timeout: 180,
        "body-size-limit": 5,
      },
    },
  },
  {
    clause: "4.1",
    name: "binary",
    handlers: attributes,
    api: "event",
    request: post({ ...json, ...binary, "ce-subject": "%C3%BC" }, "[7]"),
    answer: { body: /\["made", ?"\/me", ?"1", ?"(ü|\\u00fc)", ?\[7\]\]/ },
  },
  {
    clause: "4.2",
    name: "structured",
    handlers: attributes,
    api: "event",
    request: post(structured, JSON.stringify({ ...event, data: [7] })),
    answer: { body: /\["made", ?"\/me", ?"1", ?"(ü|\\u00fc)", ?\[7\]\]/ },
  },
  {
    clause: "4.3",
    name: "batch",
    handlers: {
      nodejs: `exports.main = ({ data }) => data.map((each) => each.id).join();`,
      python: `def main(event, context): return ",".join(each["id"] for each in event["data"])`,
    },
    api: "event",
    request: post(batch, JSON.stringify([event, { ...event, id: "2" }])),
    answer: { body: "1,2" },
  },
  ...[
    {
      name: "structured without a type",
      request: post(structured, '{"specversion":"1.0","id":"1","source":"x"}'),
    },
    { name: "structured, and no object", request: post(structured, "[]") },
    { name: "binary without an id", request: post({ ...binary, "ce-id": "" }, "") },
    { name: "of an unknown version", request: post({ ...binary, "ce-specversion": "9" }, "") },
    {
      name: "binary without a source",
      request: post({ "ce-specversion": "1.0", "ce-id": "1", "ce-type": "made" }, ""),
    },
    {
      name: "structured, and its data is no base64",
      request: post(structured, JSON.stringify({ ...event, data_base64: "not!" })),
    },
    { name: "a batch that is no list", request: post(batch, "{}") },
    { name: "a batch with one that is none", request: post(batch, "[{}]") },
  ].map(({ name, request }): Clause => {
    return { clause: "4.4", name, handlers: hello, api: "event", request, answer: { status: 400 } };
  }),
  {
    clause: "4.6",
    name: "an event in answer to another",
    handlers: {
      nodejs: `exports.main = (event) => event.buildResponseCloudEvent("2", "answered", { n: event.data.n + 1 });`,
      python: `def main(event, context): return event.buildResponseCloudEvent("2", "answered", {"n": event["data"]["n"] + 1})`,
    },
    api: "event",
    request: post({ ...json, ...binary, "ce-eventtypeversion": "v1" }, '{"n":1}'),
    answer: {
      json: {
        id: "2",
        type: "answered",
        source: "/me",
        specversion: "1.0",
        eventtypeversion: "v1",
        datacontenttype: "application/json",
        data: { n: 2 },
      },
    },
  },
  {
    clause: "5.1",
    name: "text",
    handlers: hello,
    api: "event",
    answer: { status: 200, body: "hello" },
  },
  {
    clause: "5.2",
    name: "an object",
    handlers: {
      nodejs: `exports.main = async () => ({ a: [1, null] });`,
      python: `def main(event, context): return {"a": [1, None]}`,
    },
    api: "event",
    answer: { json: { a: [1, null] } },
  },
  {
    clause: "5.3",
    name: "nothing",
    handlers: { nodejs: `exports.main = () => {};`, python: `def main(event, context): pass` },
    api: "event",
    answer: { status: 200, body: "" },
  },
  ...[
    { name: "zero", code: "0", body: "" },
    { name: "a number", code: "42", body: "42" },
    { name: "bytes", code: `Buffer.from("bytes")`, body: "bytes" },
    { name: "a Response", code: `new Response("response")`, body: "response" },
  ].map(({ name, code, body }): Clause => {
    const handlers = nodejs(`exports.main = () => ${code};`);
    return { clause: "5.4", name, handlers, api: "event", answer: { status: 200, body } };
  }),
  {
    clause: "5.5",
    name: "an error",
    handlers: {
      nodejs: `exports.main = async () => { throw new Error("secret"); };`,
      python: `def main(event, context): raise ValueError("secret")`,
    },
    api: "event",
    answer: { status: 500, body: /^internal server error$/i },
  },
  {
    clause: "5.6",
    name: "a thrown string",
    handlers: nodejs(`exports.main = () => { throw "for you"; };`),
    answer: { status: 500, body: "for you" },
  },
  {
    clause: "5.7",
    name: "a stream",
    handlers: {
      nodejs: `exports.main = async function* () { yield "a"; yield "b"; };`,
      python: `
def main(event, context):
    yield "a"
    yield "b"`,
    },
    api: "event",
    answer: { body: "ab", headers: { "transfer-encoding": "chunked" } },
  },
  {
    clause: "5.7",
    name: "a stream that fails at once",
    handlers: {
      nodejs: `exports.main = async function* () { throw new Error("secret"); };`,
      python: `
def main(event, context):
    raise ValueError("secret")
    yield "never"`,
    },
    api: "event",
    answer: { status: 500, body: /^internal server error$/i },
  },
  {
    clause: "5.8",
    name: "a status that is none",
    handlers: {
      nodejs: `exports.main = (event) => { event.setResponseStatus(100); return "never"; };`,
      python: `def main(event, context): return "never", 100`,
    },
    api: "event",
    answer: { status: 500, body: /^internal server error$/i },
  },
  {
    clause: "6.1",
    name: "too large",
    handlers: hello,
    api: "event",
    env: { FUNC_BODY_MB_LIMIT: "1" },
    request: post({}, "x".repeat(1024 * 1024 + 1)),
    answer: { status: 413 },
  },
  {
    clause: "6.2",
    name: "too long",
    handlers: {
      nodejs: `exports.main = () => new Promise(() => {});`,
      python: `
import time
def main(event, context): time.sleep(30)`,
    },
    api: "event",
    env: { FUNC_TIMEOUT: "1" },
    answer: { status: 408 },
  },
  {
    clause: "6.5",
    name: "a head that is too large",
    handlers: hello,
    api: "event",
    request: { headers: { "x-large": "x".repeat(40_000) } },
    answer: { status: 431 },
  },
  {
    clause: "7.1",
    name: "the response",
    handlers: nodejs(
      `exports.main = (req, res) => { res.status(201).json(req.body); return "ignored"; };`,
    ),
    api: "request",
    request: post(json, '{"a":1}'),
    answer: { status: 201, json: { a: 1 } },
  },
  {
    clause: "7.2",
    name: "sdk",
    handlers: nodejs(
      `import { getFunctionName, getNamespace } from "sdk"; export const main = (req, res) => res.send(getFunctionName() + getNamespace());`,
    ),
    api: "request",
    answer: { body: "hellodefault" },
  },
  {
    clause: "8.1",
    name: "fetch",
    handlers: nodejs(
      `export default { fetch: async (request) => Response.json([request.method, await request.text()], { status: 201 }) };`,
    ),
    request: post({}, "text"),
    answer: { status: 201, json: ["POST", "text"] },
  },
  {
    clause: "8.2",
    name: "Functions Framework",
    handlers: {
      nodejs: `require("@google-cloud/functions-framework").http("x", (req, res) => res.send("http"));`,
      python: `
import functions_framework
@functions_framework.http
def hello(request): return "http"`,
    },
    answer: { body: "http" },
  },
  {
    clause: "8.3",
    name: "handle",
    handlers: nodejs(
      `exports.handle = (context, body) => ({ statusCode: 202, body: body.a + context.method });`,
    ),
    request: post(json, '{"a":"b"}'),
    answer: { status: 202, body: "bPOST" },
  },
  {
    clause: "8.3",
    name: "an instance",
    handlers: {
      python: `
def new(): return Function()
class Function:
    async def handle(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 202, "headers": []})
        await send({"type": "http.response.body", "body": scope["method"].encode()})`,
    },
    request: post(json, "{}"),
    answer: { status: 202, body: "POST" },
  },
  {
    clause: "8.4",
    name: "Lambda",
    handlers: {
      nodejs: `exports.handler = async (event) => ({ statusCode: 203, body: event.version + event.rawPath });`,
      python: `def lambda_handler(event, context): return {"statusCode": 203, "body": event["version"] + event["rawPath"]}`,
    },
    request: { path: "/p" },
    answer: { status: 203, body: "2.0/p", headers: { "content-type": "application/json" } },
  },
  {
    clause: "8.4",
    name: "Lambda, a stream",
    handlers: nodejs(
      `exports.handler = awslambda.streamifyResponse(async (event, responseStream) => {
      awslambda.HttpResponseStream.from(responseStream, { statusCode: 201, headers: { "x-path": event.rawPath } }).end("streamed"); });`,
    ),
    request: { path: "/p" },
    answer: { status: 201, body: "streamed", headers: { "x-path": "/p" } },
  },
  {
    clause: "8.7",
    name: "OpenFaaS",
    handlers: {
      nodejs: `module.exports = async (event, context) => context.status(201).headers({ "x-path": event.path }).succeed(event.method);`,
      python: `def handle(event, context): return {"statusCode": 201, "headers": {"x-path": event.path}, "body": event.method}`,
    },
    request: { path: "/p" },
    answer: { status: 201, body: "GET", headers: { "x-path": "/p" } },
  },
  {
    clause: "8.7",
    name: "OpenFaaS, the body alone",
    handlers: { python: `def handle(req): return "got " + req` },
    request: post({}, "b"),
    answer: { body: "got b" },
  },
  {
    clause: "8.8",
    name: "Fission",
    handlers: {
      nodejs: `module.exports = async (context) => ({ status: 202, headers: { "x-path": context.request.path }, body: context.request.method });`,
      python: `
from flask import request
def main(): return request.method, 202, {"x-path": request.path}`,
    },
    request: { path: "/p" },
    answer: { status: 202, body: "GET", headers: { "x-path": "/p" } },
  },
  {
    clause: "8.9",
    name: "Nuclio",
    handlers: {
      nodejs: `exports.handler = (context, event) => context.callback(new context.Response(event.body.toString() + context.userData.n, { "x-path": event.path }, "text/plain", 202));
exports.initContext = (context) => { context.userData.n = 1; };`,
      python: `
def init_context(context): context.user_data.n = 1
def handler(context, event):
    return context.Response(body=event.body.decode() + str(context.user_data.n), headers={"x-path": event.path}, status_code=202)`,
    },
    request: { path: "/p", ...post({}, "b") },
    answer: { status: 202, body: "b1", headers: { "x-path": "/p" } },
  },
  {
    clause: "9.1",
    name: "names of metrics",
    handlers: hello,
    api: "event",
    request: { path: "/metrics" },
    answer: {
      body: /function_failures_total[^]*function_duration_(miliseconds|seconds)[^]*function_in_flight_requests/,
    },
  },
];
