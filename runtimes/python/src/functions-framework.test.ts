/** Handlers in the style of Functions Framework, as its documents write them. */
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { installPackages, missingPython, PythonRuntime } from "./testing.ts";

const framework = `
import functions_framework

@functions_framework.http
def hello(request):
    name = (request.get_json(silent=True) or {}).get("name") or request.args.get("name", "World")
    return f"Hello {name}!", 202, {"X-A": "1"}

@functions_framework.cloud_event
def on_event(cloud_event):
    print("got", cloud_event["type"], cloud_event["id"], cloud_event.data)
`;

const background = `
def on_change(data, context):
    print("got", data, context.event_id, context.event_type, context.resource)
`;

const typed = `
import functions_framework

class Name:
    def __init__(self, name): self.name = name
    @staticmethod
    def from_dict(values): return Name(values["name"])
    def to_dict(self): return {"hello": self.name}

@functions_framework.typed
def hello(name: Name):
    return name
`;

const event = { "ce-specversion": "1.0", "ce-type": "made", "ce-source": "/me", "ce-id": "7" };
const json = { "content-type": "application/json" };

const rows: Row[] = [
  {
    name: "Functions Framework, HTTP",
    files: { "main.py": framework },
    env: { FUNCTION_TARGET: "hello" },
    call: { method: "POST", headers: json, body: '{"name":"Ada"}' },
    status: 202,
    body: "Hello Ada!",
    headers: { "x-a": "1" },
  },
  {
    name: "Functions Framework, a function that is not decorated",
    files: { "main.py": "def hello(request): return {'path': request.path}" },
    env: { FUNCTION_TARGET: "hello" },
    target: "/x",
    // With Flask's spaces where the machine has Flask.
    body: /^\{"path": ?"\/x"\}\n?$/,
  },
  {
    name: "Functions Framework, event",
    files: { "main.py": framework },
    call: { method: "POST", headers: { ...event, ...json }, body: '{"a":1}' },
    body: "OK",
    output: "got made 7 {'a': 1}",
  },
  {
    name: "Functions Framework, no event",
    files: { "main.py": framework },
    status: 400,
    body: "malformed CloudEvent: the request is not a CloudEvent\n",
  },
  {
    name: "Functions Framework, background event",
    files: { "main.py": background },
    env: { FUNCTION_TARGET: "on_change", FUNCTION_SIGNATURE_TYPE: "event" },
    call: {
      method: "POST",
      headers: json,
      body: '{"context":{"eventId":"8","eventType":"changed","resource":"a"},"data":{"n":1}}',
    },
    body: "OK",
    output: "got {'n': 1} 8 changed a",
  },
  {
    name: "Functions Framework, background event of the older form",
    files: { "main.py": background },
    env: { FUNCTION_TARGET: "on_change", FUNCTION_SIGNATURE_TYPE: "event" },
    call: {
      method: "POST",
      headers: json,
      body: '{"eventId":"8","eventType":"changed","resource":"a","data":1}',
    },
    body: "OK",
    output: "got 1 8 changed a",
  },
  {
    name: "Functions Framework, CloudEvent for a function that takes background events",
    files: { "main.py": background },
    env: { FUNCTION_TARGET: "on_change", FUNCTION_SIGNATURE_TYPE: "event" },
    call: { method: "POST", headers: { ...event, ...json }, body: "2" },
    body: "OK",
    output: "got 2 7 made /me",
  },
  {
    name: "Functions Framework, no background event",
    files: { "main.py": background },
    env: { FUNCTION_TARGET: "on_change", FUNCTION_SIGNATURE_TYPE: "event" },
    call: { method: "POST", headers: json, body: "[]" },
    status: 400,
    body: "malformed CloudEvent: the body is not an event: it must be an object with context and data\n",
  },
  {
    name: "Functions Framework, typed",
    files: { "main.py": typed },
    call: { method: "POST", headers: json, body: '{"name":"Ada"}' },
    body: '{"hello": "Ada"}',
  },
  {
    name: "Functions Framework, typed by the decorator",
    files: { "main.py": typed.replace("typed\n", "typed(Name)\n").replace("name: Name", "name") },
    call: { method: "POST", headers: json, body: '{"name":"Ada"}' },
    body: '{"hello": "Ada"}',
  },
  ...["ZeroDivisionError", "ArithmeticError"].map((kind) => ({
    name: `Functions Framework, an error that has a handler for ${kind}`,
    files: {
      "main.py": `
import functions_framework
@functions_framework.errorhandler(${kind})
def on_error(error): return f"no: {error}", 418
@functions_framework.http
def divide(request): return str(1 / 0)`,
    },
    status: 418,
    body: "no: division by zero",
  })),
  {
    name: "Functions Framework, an error that has no handler",
    files: {
      "main.py": `
import functions_framework
@functions_framework.errorhandler(KeyError)
def on_error(error): return "key", 418
@functions_framework.http
def divide(request): return str(1 / 0)`,
    },
    status: 500,
    body: "Internal server error",
  },
  {
    name: "Functions Framework, a file of the same directory, relative",
    files: {
      "main.py": "from .words import hello\ndef greet(request): return hello()",
      "words.py": `def hello(): return "hello"`,
    },
    env: { FUNCTION_TARGET: "greet" },
    body: "hello",
  },
];

describe.skipIf(missingPython)("a handler of Functions Framework", () => {
  test.each(rows)("$name", expectAnswer);

  const flask = installPackages("flask==3.1.3");
  test.skipIf(!flask)(
    "Functions Framework with Flask's request and answers (needs Flask from the registry)",
    async () => {
      const code = `
import functions_framework
from flask import jsonify, abort, request as current
@functions_framework.http
def hello(request):
    if request.path == "/no":
        abort(403)
    return jsonify(name=request.args["name"], same=current.path)
`;
      await using runtime = await PythonRuntime.start(
        { "main.py": code },
        { PYTHONPATH: flask ?? "" },
      );
      expect(await runtime.json("/a?name=Ada")).toEqual({ name: "Ada", same: "/a" });
      expect((await runtime.call("/no")).status).toBe(403);
    },
  );

  test.skipIf(!flask)("with Flask's request, where the code does not import Flask", async () => {
    const code = `
def greet(request):
    return {"accepts": request.accept_mimetypes.best, "query": request.query_string.decode(), "type": type(request._get_current_object()).__module__}
`;
    await using runtime = await PythonRuntime.start(
      { "main.py": code },
      { PYTHONPATH: flask ?? "", FUNCTION_TARGET: "greet" },
    );
    const headers = { accept: "text/html" };
    expect(await runtime.json("/?a=1", { headers })).toEqual({
      accepts: "text/html",
      query: "a=1",
      type: "flask.wrappers",
    });
  });

  test.skipIf(!flask)("with Flask's application while it is loaded, and later", async () => {
    const code = `
from flask import current_app
current_app.config["GREETING"] = "hello"
def greet(request): return current_app.config["GREETING"]
`;
    await using runtime = await PythonRuntime.start(
      { "main.py": code },
      { PYTHONPATH: flask ?? "", FUNCTION_TARGET: "greet" },
    );
    expect((await runtime.call()).body).toBe("hello");
  });

  const starlette = installPackages("starlette==1.0.0");
  test.skipIf(!starlette)(
    "functions_framework.aio with Starlette's requests and answers, which pip installs",
    { timeout: 90_000 },
    async () => {
      const code = `
import functions_framework.aio
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

@functions_framework.aio.http
async def hello(request):
    if request.url.path == "/no":
        raise HTTPException(403, "no")
    if request.url.path == "/stream":
        return StreamingResponse(iter(["a", "b"]))
    return {"got": (await request.json())["name"]}, 201

@functions_framework.aio.http
def blocking(request):
    return request.method

@functions_framework.aio.cloud_event
async def on_event(cloud_event):
    print("got", cloud_event["id"], cloud_event.data)
`;
      const start = (target: string) =>
        PythonRuntime.start(
          { "main.py": code },
          { PYTHONPATH: starlette ?? "", FUNCTION_TARGET: target },
        );
      await using runtime = await start("hello");
      const call = { method: "POST", headers: json, body: '{"name":"Ada"}' };
      expect(await runtime.call("/", call)).toMatchObject({ status: 201, body: '{"got":"Ada"}' });
      expect(await runtime.call("/no")).toMatchObject({ status: 403, body: "no" });
      expect((await runtime.call("/stream")).body).toBe("ab");
      await using blocking = await start("blocking");
      expect((await blocking.call("/", { method: "PUT" })).body).toBe("PUT");
      await using onEvent = await start("on_event");
      const events = { method: "POST", headers: { ...event, ...json }, body: "1" };
      expect((await onEvent.call("/", events)).body).toBe("OK");
      await expect.poll(() => onEvent.output).toContain("got 7 1");
      expect((await onEvent.call("/", call)).status).toBe(400);
    },
  );
});
