/** Handlers in the style of Nuclio, as its documents write them. */
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { missingPython, PythonRuntime } from "./testing.ts";

const json = { "content-type": "application/json" };

const response = `
def handler(context, event):
    return context.Response(body=str(event.body), headers={**event.headers, "X-A": event.get_header("x-b")},
                            content_type="text/csv", status_code=201)
`;

const answers: (Partial<Row> & { is: string; answer: string; body: string })[] = [
  { is: "text", answer: `"text"`, body: "text", headers: { "content-type": "text/plain" } },
  { is: "bytes", answer: `b"bytes"`, body: "bytes" },
  { is: "a number, as text", answer: "1.5", body: "1.5" },
  { is: "nothing", answer: "None", body: "" },
  { is: "a status and text", answer: `(201, "made")`, status: 201, body: "made" },
  {
    is: "a status and an object",
    answer: `(202, {"a": 1})`,
    status: 202,
    body: '{"a": 1}',
    headers: { "content-type": "application/json" },
  },
  { is: "a list", answer: `[{"a": 1}, 2]`, body: '[{"a": 1}, 2]' },
  {
    is: "a Response of an object",
    answer: `context.Response(body={"a": 1}, headers=None)`,
    body: '{"a": 1}',
    headers: { "content-type": "application/json" },
  },
  {
    is: "what its event is",
    answer: `{name: str(getattr(event, name)) for name in ("method", "path", "url", "fields", "size", "content_type")} | {"kind": event.trigger.kind}`,
    body: '{"method": "GET", "path": "/a/b", "url": "/a/b?x=1", "fields": "{\'x\': \'1\'}", "size": "0", "content_type": "", "kind": "http"}',
  },
  {
    is: "when its event was, in a form of its own",
    answer: `str(event.timestamp.tzinfo) + str(len(event.id))`,
    body: "None36",
  },
];

const rows: Row[] = [
  ...answers.map(({ is, answer, ...more }) => ({
    name: is,
    files: { "handler.py": `def handler(context, event): return ${answer}` },
    target: "/a/b?x=1",
    ...more,
  })),
  {
    name: "a Response, with the request's headers among its own",
    files: { "handler.py": response },
    call: { method: "POST", headers: { "x-b": "c", "content-type": "text/plain" }, body: "words" },
    status: 201,
    body: "b'words'",
    headers: { "x-a": "c", "x-b": "c", "content-type": "text/csv" },
  },
  {
    name: "JSON that it got as an object",
    files: { "handler.py": response },
    call: { method: "POST", headers: json, body: '{"a":[1]}' },
    status: 201,
    body: "{'a': [1]}",
  },
  {
    name: "JSON that is none, as bytes",
    files: { "handler.py": response },
    call: { method: "POST", headers: json, body: '{"a"' },
    status: 201,
    body: `b'{"a"'`,
  },
  {
    name: "a Response of the package nuclio_sdk, asynchronously",
    files: {
      "handler.py": `
import nuclio_sdk
async def handler(context, event: nuclio_sdk.Event):
    answer = nuclio_sdk.Response()
    answer.status_code, answer.body = 202, {"batch": isinstance(event, list)}
    answer.ensure_no_ack()
    return answer`,
    },
    status: 202,
    body: '{"batch": false}',
    headers: { "x-nuclio-stream-no-ack": "True" },
  },
  {
    name: "an error",
    files: { "handler.py": `def handler(context, event): raise ValueError("secret")` },
    status: 500,
    body: "Internal server error",
    output: "ValueError: secret",
  },
  {
    name: "what init_context has made",
    files: {
      "handler.py": `
def init_context(context): context.user_data.factor = 2
def handler(context, event): return str(context.user_data.factor * int(event.body))`,
    },
    call: { method: "POST", body: "21" },
    body: "42",
  },
  {
    name: "what an asynchronous init_context has made, after start",
    files: {
      "handler.py": `
made = []
def start(): made.append("start")
async def init_context(context): made.append("init_context")
def handler(c, e): return made`,
    },
    body: '["start", "init_context"]',
  },
  {
    name: "a function of another name, in a file of another name",
    files: { "reverser.py": `def reverse(context, event): return event.body.decode()[::-1]` },
    env: { HANDLER_MOD_NAME: "reverser", HANDLER_FUNC_NAME: "reverse" },
    call: { method: "POST", body: "abc" },
    body: "cba",
  },
  ...[
    { line: `info("got %s", 1)`, output: "INFO: got 1\n" },
    { line: `debug_with("got", "sentence", n=1)`, output: "DEBUG: got sentence: {'n': 1}\n" },
    { line: `warn("100 %")`, output: "WARNING: 100 %\n" },
  ].map(({ line, output }) => ({
    name: `having logged by ${line}`,
    files: { "handler.py": `def handler(context, event): context.logger.${line}; return ""` },
    body: "",
    output,
  })),
];

describe.skipIf(missingPython)("a handler of Nuclio answers", () => {
  test.each(rows)("$name", expectAnswer);

  test("that calls another Function answers what that one does", async () => {
    await using callee = await PythonRuntime.start(`
def handler(context, event):
    return context.Response(body={"got": event.body["a"], "how": event.method + event.path + event.get_header("X-B")}, status_code=201)`);
    await using caller = await PythonRuntime.start(`
def handler(context, event):
    event.method, event.path, event.headers = "PUT", "/there", {"x-b": "c"}
    return context.platform.call_function("other", event, timeout=5, service_name_override="127.0.0.1:${callee.port}")`);
    const call = { method: "POST", headers: json, body: '{"a":1}' };
    expect(await caller.call("/", call)).toMatchObject({
      status: 201,
      body: '{"got": 1, "how": "PUT/therec"}',
    });
  });

  test("logs with its level where lines of the log have one", async () => {
    await using runtime = await PythonRuntime.start(
      `def handler(context, event): context.logger.warn_with("low", left=1); return ""`,
      { FUNC_LOG_FORMAT: "json" },
    );
    await runtime.call("/", { headers: { "x-request-id": "r1" } });
    await expect
      .poll(() => runtime.output)
      .toMatch(/"level": "warn", "message": "WARNING: low: \{'left': 1\}", "invocation": "r1"/);
  });

  test("calls what it has registered for the end, at the end", async () => {
    await using runtime = await PythonRuntime.start(`
def stop(): print("stopped")
def init_context(context):
    context.platform.set_drain_callback(lambda: print("drained"))
    context.platform.set_termination_callback(lambda: print("terminated"))
def handler(context, event): return ""`);
    runtime.signal("SIGTERM");
    expect(await runtime.exited).toBe(0);
    expect(runtime.output).toContain("stopped\ndrained\nterminated\n");
  });

  test("does not start when init_context fails", async () => {
    const runtime = await PythonRuntime.launch(`
def init_context(context): raise RuntimeError("no factor")
def handler(context, event): return ""`);
    await using _ = runtime;
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toContain("RuntimeError: no factor");
  });
});
