/** Handlers in the style of Functions Framework, AWS Lambda and Knative's func, as their documents write them. */
import { describe, expect, test } from "vitest";
import { type Call, installPackages, missingPython, PythonRuntime } from "./testing.ts";

const lambda = `
import json
def lambda_handler(event, context):
    if event["rawPath"] == "/plain":
        return {"left": context.get_remaining_time_in_millis() > 1000}
    if event["rawPath"] == "/binary":
        return {"statusCode": 200, "headers": {"content-type": "image/png"}, "body": "AAE=", "isBase64Encoded": True}
    return {
        "statusCode": 201, "headers": {"X-A": "1"}, "cookies": ["a=1", "b=2"],
        "body": json.dumps([event["version"], event["requestContext"]["http"]["method"], event.get("queryStringParameters"),
                            event.get("cookies"), event.get("body"), event["isBase64Encoded"], context.function_name]),
    }
`;

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

const func = `
import logging
def new():
    return Function()
class Function:
    def __init__(self):
        self.started = False
    def start(self, cfg):
        self.started = cfg["FUNC_NAME"]
    def stop(self):
        print("stopped")
    async def handle(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [[b"content-type", b"text/plain"]]})
        await send({"type": "http.response.body", "body": f"{self.started}".encode()})
`;

const event = { "ce-specversion": "1.0", "ce-type": "made", "ce-source": "/me", "ce-id": "7" };
const json = { "content-type": "application/json" };

interface Row {
  name: string;
  files: Record<string, string>;
  env?: Record<string, string>;
  target?: string;
  call?: Call;
  status?: number;
  body: string;
  headers?: Record<string, unknown>;
  output?: string;
}

const rows: Row[] = [
  {
    name: "Lambda with a status",
    files: { "lambda_function.py": lambda },
    target: "/a?x=1&x=2",
    call: {
      method: "POST",
      headers: { cookie: "c=3; d=4", "content-type": "text/plain" },
      body: "hi",
    },
    status: 201,
    body: '["2.0", "POST", {"x": "1,2"}, ["c=3", "d=4"], "hi", false, "hello"]',
    headers: { "x-a": "1", "set-cookie": ["a=1", "b=2"], "content-type": "application/json" },
  },
  {
    name: "Lambda with bytes",
    files: { "handler.py": lambda.replace("lambda_handler", "handler") },
    call: { method: "PUT", headers: { "content-type": "image/png" }, body: "\u0001" },
    status: 201,
    body: '["2.0", "PUT", null, null, "AQ==", true, "hello"]',
  },
  {
    name: "Lambda without a status",
    files: { "lambda_function.py": lambda },
    target: "/plain",
    body: '{"left": true}',
  },
  {
    name: "Lambda that answers bytes",
    files: { "lambda_function.py": lambda },
    target: "/binary",
    body: "\0\u0001",
    headers: { "content-type": "image/png" },
  },
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
    body: '{"path": "/x"}',
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
    body: "malformed CloudEvent: the request is no CloudEvent\n",
  },
  { name: "func, an instance", files: { "func.py": func }, body: "hello" },
  {
    name: "func, handle alone",
    files: { "func.py": `${func.replace(/def new[^]*?pass/, "")}\nhandle = new().handle\ndel new` },
    body: "False",
  },
];

describe.skipIf(missingPython)("a neighbour's handler", () => {
  test.each(rows)(
    "$name",
    async ({ files, env, target, call, status = 200, body, headers = {}, output }) => {
      await using runtime = await PythonRuntime.start(files, env);
      const answer = await runtime.call(target, call);
      expect({ status: answer.status, body: answer.body }).toEqual({ status, body });
      expect(answer.headers).toMatchObject(headers);
      if (output) await expect.poll(() => runtime.output).toContain(output);
    },
  );

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
});
