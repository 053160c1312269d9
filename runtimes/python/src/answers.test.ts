import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missingPython, PythonRuntime } from "./testing.ts";

const source = `
import io, sys
sys.path[:] = [path for path in sys.path if "-packages" not in path]
from bottle import HTTPResponse, abort

class Odd: pass

def generate():
    yield "one "
    yield b"two"

def fail_later():
    yield "one"
    raise RuntimeError("too late")

def main(event, context):
    request = event["extensions"]["request"]
    return {
        "/text": lambda: "hällo",
        "/bytes": lambda: b"raw",
        "/dict": lambda: {"a": [1, None]},
        "/empty-dict": lambda: {},
        "/none": lambda: None,
        "/zero": lambda: 0,
        "/false": lambda: False,
        "/empty-list": lambda: [],
        "/number": lambda: 42,
        "/list": lambda: [{"a": 1}],
        "/strings": lambda: ["a", "b"],
        "/generator": generate,
        "/fail-later": fail_later,
        "/file": lambda: io.BytesIO(b"file"),
        "/tuple": lambda: ({"made": True}, 201, {"X-Made": "yes"}),
        "/response": lambda: HTTPResponse(status=418, body="teapot", headers={"X-Pot": "tea"}),
        "/response-dict": lambda: HTTPResponse({"a": 1}, 202),
        "/abort": lambda: abort(403, "no entry"),
        "/odd": lambda: Odd(),
        "/raise": lambda: 1 / 0,
        "/exit": lambda: exit(3),
        "/bad-header": lambda: ("x", 200, {"X-A": "1\\r\\nX-B: 2"}),
        "/large": lambda: "x" * 3_000_000,
    }[request.path]()
`;

interface Row {
  path: string;
  status?: number;
  body: string;
  headers?: Record<string, string>;
}

const html = { "content-type": "text/html; charset=UTF-8" };
const json = { "content-type": "application/json" };

const rows: Row[] = [
  { path: "/text", body: "hällo", headers: { ...html, "content-length": "6" } },
  { path: "/bytes", body: "raw", headers: html },
  { path: "/dict", body: '{"a": [1, null]}', headers: json },
  { path: "/empty-dict", body: "{}", headers: json },
  { path: "/none", body: "" },
  { path: "/zero", body: "" },
  { path: "/false", body: "" },
  { path: "/empty-list", body: "" },
  { path: "/number", body: "42", headers: json },
  { path: "/list", body: '[{"a": 1}]', headers: json },
  { path: "/strings", body: "ab", headers: html },
  { path: "/generator", body: "one two", headers: { "transfer-encoding": "chunked" } },
  { path: "/file", body: "file" },
  { path: "/tuple", status: 201, body: '{"made": true}', headers: { ...json, "x-made": "yes" } },
  { path: "/response", status: 418, body: "teapot", headers: { "x-pot": "tea" } },
  { path: "/response-dict", status: 202, body: '{"a": 1}', headers: json },
  { path: "/abort", status: 403, body: "no entry" },
  { path: "/odd", status: 500, body: "Internal server error" },
  { path: "/raise", status: 500, body: "Internal server error" },
  { path: "/exit", status: 500, body: "Internal server error" },
  { path: "/bad-header", status: 500, body: "Internal server error" },
  { path: "/large", body: "x".repeat(3_000_000), headers: { "content-length": "3000000" } },
];

const runtimes = {
  "def main": source,
  "async def main": source.replace("def main", "async def main"),
};

describe.skipIf(missingPython).each(Object.entries(runtimes))("an answer of %s", (_name, code) => {
  let runtime: PythonRuntime;
  beforeAll(async () => {
    runtime = await PythonRuntime.start(code);
  });
  afterAll(() => runtime.stop());

  test.each(rows)("$path", async ({ path, status = 200, body, headers = {} }) => {
    const answer = await runtime.call(path);
    expect(answer.body).toBe(body);
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject(headers);
    expect(answer.headers).not.toHaveProperty("x-b");
  });

  test("to HEAD has the length and no body", async () => {
    const answer = await runtime.call("/text", { method: "HEAD" });
    expect(answer.body).toBe("");
    expect(answer.headers["content-length"]).toBe("6");
  });

  test("that breaks off is noticed by the client", async () => {
    await expect(runtime.call("/fail-later")).rejects.toThrow(/aborted|hang up|reset/);
    await expect.poll(() => runtime.output).toContain("RuntimeError: too late");
  });

  test("of an error leaves the user's traceback, without the runtime's frames, in the log", async () => {
    await runtime.call("/raise");
    await expect.poll(() => runtime.output).toContain("ZeroDivisionError: division by zero");
    expect(runtime.output).toMatch(/calling the function\nTraceback .*\n {2}File ".*handler\.py"/);
    expect(runtime.output).not.toContain("spry_runtime");
  });

  test("is counted with its duration", async () => {
    const { body } = await runtime.call("/metrics");
    expect(body).toMatch(/^function_calls_total\{method="GET"\} \d+$/m);
    expect(body).toMatch(/^function_calls_total\{method="HEAD"\} 1$/m);
    expect(body).toMatch(/^function_failures_total\{method="GET"\} [1-9]\d*$/m);
    expect(body).toMatch(/^function_duration_seconds_bucket\{method="GET",le="\+Inf"\} \d+$/m);
  });
});

const withoutPackages = `import sys
sys.path[:] = [path for path in sys.path if "-packages" not in path]
`;

test.skipIf(missingPython).each([
  ["the stand-in for Flask", withoutPackages],
  ["Flask, if it is installed", ""],
])("the new API's main() sees the request and the sdk, with %s", async (_name, prologue) => {
  await using runtime = await PythonRuntime.start(
    `${prologue}
import sdk
from flask import request, jsonify, Response

def main():
    if request.path == "/teapot":
        return Response("short", status=418, mimetype="text/plain")
    if request.path == "/list":
        return []
    event = sdk.get_cloud_event(request)
    return jsonify(name=sdk.get_function_name(), space=sdk.get_namespace(), runtime=sdk.get_runtime(),
                   timeout=sdk.get_timeout(), limit=sdk.get_body_size_limit(), arg=request.args.get("a", type=int),
                   json=request.get_json(silent=True), event=event and event["type"])
`,
    { FUNC_RUNTIME: "python314", FUNC_TIMEOUT: "9", FUNC_BODY_MB_LIMIT: "2" },
  );
  expect(
    await runtime.json("/?a=5", {
      method: "PUT",
      body: "[1]",
      headers: { "content-type": "application/json" },
    }),
  ).toEqual({
    name: "hello",
    space: "space",
    runtime: "python314",
    timeout: 9,
    limit: 2,
    arg: 5,
    json: [1],
    event: null,
  });
  expect(await runtime.call("/teapot")).toMatchObject({
    status: 418,
    body: "short",
    headers: { "content-type": expect.stringMatching(/^text\/plain/) },
  });
  expect(await runtime.json("/list")).toEqual([]);
});

test.skipIf(missingPython)(
  "the sdk's event has the getters of the package cloudevents",
  async () => {
    await using runtime = await PythonRuntime.start(
      `
import sdk
def main():
    event = sdk.get_cloud_event()
    return {"all": [event.get_type(), event.get_source(), event.get_id(), event.get_specversion(), event.get_subject(),
                    event.get_time().year, event.get_datacontenttype(), event.get_extension("color"), event.get_data(),
                    sorted(event.get_attributes())]}
`,
      { FUNC_RUNTIME: "python314" },
    );
    const headers = {
      "content-type": "application/json",
      "ce-specversion": "1.0",
      "ce-type": "made",
      "ce-source": "/me",
      "ce-id": "7",
      "ce-time": "2026-01-02T03:04:05Z",
      "ce-color": "red",
    };
    const names = ["color", "datacontenttype", "id", "source", "specversion", "time", "type"];
    expect(await runtime.json("/", { method: "POST", headers, body: '{"a":1}' })).toEqual({
      all: ["made", "/me", "7", "1.0", null, 2026, "application/json", "red", { a: 1 }, names],
    });
  },
);
