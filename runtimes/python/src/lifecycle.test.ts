import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { missingPython, PythonRuntime } from "./testing.ts";

const broken: [name: string, files: Record<string, string>, output: RegExp][] = [
  [
    "a syntax error",
    { "handler.py": "def main(:\n" },
    /^loading handler\.py: SyntaxError: [^]*def main\(:/,
  ],
  [
    "an error at import",
    { "handler.py": "import json\ndef load():\n    return json.loads('{')\nload()\n" },
    /^loading handler\.py: JSONDecodeError: [^]*line 3, in load/,
  ],
  [
    "a missing dependency",
    { "handler.py": "import not_installed\n" },
    /^loading handler\.py: ModuleNotFoundError: No module named 'not_installed'[^]*handler\.py", line 1/,
  ],
  ["sys.exit at import", { "handler.py": "exit(0)\n" }, /^loading handler\.py: SystemExit: 0/],
  [
    "no main",
    { "handler.py": "x = 1\n" },
    /^loading handler\.py: it defines neither a function main\(event, context\) nor an app/,
  ],
  ["no file", { "other.py": "" }, /^loading handler\.py: no such file in /],
];

describe.skipIf(missingPython)("loading", () => {
  test.each(broken)("%s ends the runtime with 1 and says why", async (_name, files, output) => {
    await using runtime = await PythonRuntime.launch(files);
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toMatch(output);
    expect(runtime.output).not.toContain("spry_runtime");
  });

  test("a setting that is no number is named", async () => {
    await using runtime = await PythonRuntime.launch("", { FUNC_TIMEOUT: "soon" });
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toContain(
      "reading FUNC_TIMEOUT: must be a number from 0.001 to 86400, not 'soon'",
    );
  });

  test("a taken port is named", async () => {
    await using first = await PythonRuntime.start("def main(event, context): pass");
    await using second = await PythonRuntime.launch("", { FUNC_PORT: String(first.port) });
    expect(await second.exited).toBe(1);
    expect(second.output).toMatch(new RegExp(`^listening on 127.0.0.1:${first.port}: `));
  });

  test("refuses connections until the code is loaded", async () => {
    await using runtime = await PythonRuntime.launch(`
import os, time
print("loading")
while not os.path.exists(os.path.join(os.path.dirname(__file__), "go")): time.sleep(0.01)
def main(event, context): pass
`);
    await expect.poll(() => runtime.output).toContain("loading");
    await expect(runtime.call("/healthz")).rejects.toThrow("ECONNREFUSED");
    runtime.write("go", "");
    await runtime.ready;
    expect((await runtime.call("/healthz")).body).toBe("OK");
  });

  test.each([
    [
      "other names",
      { MOD_NAME: "other", FUNC_HANDLER: "go" },
      { "other.py": "def go(e, c): return 'other'" },
    ],
    [
      "the newer names",
      { HANDLER_MOD_NAME: "o", HANDLER_FUNC_NAME: "g" },
      { "o.py": "def g(e, c): return 'other'" },
    ],
    ["one argument", {}, { "handler.py": "def main(event): return 'other'" }],
    [
      "an object",
      {},
      { "handler.py": "class A:\n  def go(self, e, c): return 'other'\nmain = A().go" },
    ],
    [
      "other modules beside it",
      {},
      {
        "handler.py": "import server\ndef main(e, c): return server.x",
        "server.py": "x = 'other'",
      },
    ],
  ])("takes %s", async (_name, env, files: Record<string, string>) => {
    await using runtime = await PythonRuntime.start(files, env);
    expect((await runtime.call()).body).toBe("other");
  });
});

const asgi = `
import asyncio
state = []
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        state.append("started")
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print("lifespan over")
        return await send({"type": "lifespan.shutdown.complete"})
    request = await receive()
    headers = dict(scope["headers"])
    await send({"type": "http.response.start", "status": 201, "headers": [(b"x-a", headers.get(b"x-a", b""))]})
    body = scope["method"].encode() + b" " + scope["path"].encode() + b" " + request["body"] + b" " + state[0].encode()
    await send({"type": "http.response.body", "body": body, "more_body": True})
    await asyncio.sleep(0.01)
    await send({"type": "http.response.body", "body": b" end"})
`;

const wsgi = `
class App:
    def __call__(self, environ, start_response):
        write = start_response("201 Made", [("X-A", environ.get("HTTP_X_A", "")), ("Content-Type", "text/plain")])
        yield (environ["REQUEST_METHOD"] + " " + environ["PATH_INFO"] + " ").encode()
        yield environ["wsgi.input"].read() + b" started end"
app = App()
`;

describe.skipIf(missingPython)("an application object", () => {
  test.each([
    ["ASGI", asgi],
    ["WSGI", wsgi],
  ])("of %s is served as it is", async (_name, code) => {
    await using runtime = await PythonRuntime.start(code);
    const answer = await runtime.call("/a%20b", {
      method: "POST",
      body: "body",
      headers: { "x-a": "1" },
    });
    expect(answer).toMatchObject({
      status: 201,
      body: "POST /a b body started end",
      headers: { "x-a": "1" },
    });
    const probe = { headers: { "user-agent": "kube-probe/1.36" } };
    expect((await runtime.call("/healthz", probe)).body).toBe("OK");
    runtime.signal("SIGTERM");
    expect(await runtime.exited).toBe(0);
    if (code === asgi) expect(runtime.output).toContain("lifespan over");
  });
});

const handler = `
import atexit, time
atexit.register(lambda: print("atexit ran"))
def main(event, context):
    request = event["extensions"]["request"]
    if request.path == "/slow":
        print("begun")
        time.sleep(2.5)
    return "fine"
`;

const hooks = `
state = []
def start(): state.append("started")
def stop(): print("stopped after", len(state))
def main(event, context):
    state.append("called")
    return state[0]
`;

describe.skipIf(missingPython)("start and stop", () => {
  test.each([
    ["def", hooks],
    ["async def", hooks.replaceAll("def ", "async def ")],
  ])("%s are called before the first and after the last request", async (_name, code) => {
    await using runtime = await PythonRuntime.start(code);
    expect((await runtime.call()).body).toBe("started");
    runtime.signal("SIGTERM");
    expect(await runtime.exited).toBe(0);
    expect(runtime.output).toContain("stopped after 2");
  });

  test.each(["def", "async def"])("%s start that fails is a load error", async (form) => {
    await using runtime = await PythonRuntime.launch(
      `${form} start(): raise OSError("no database")\n${form} main(event, context): pass`,
    );
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toMatch(
      /^loading handler\.py: start: no database\n[^]*handler\.py", line 1, in start/,
    );
    expect(runtime.output).not.toContain("spry_runtime");
  });
});

describe.skipIf(missingPython)("SIGTERM", () => {
  test.each([
    ["def main", handler],
    [
      "async def main",
      handler
        .replace("def main", "async def main")
        .replace("time.sleep", "await asyncio.sleep")
        .replace("import ", "import asyncio, "),
    ],
  ])("lets %s answer for a moment and finish what it has begun", async (_name, code) => {
    await using runtime = await PythonRuntime.start(code, { FUNC_SHUTDOWN_DELAY_MS: "2000" });
    const idle = runtime.connect();
    await once(idle, "connect");
    const idleClosed = once(idle.resume(), "close");
    const slow = runtime.call("/slow");
    await expect.poll(() => runtime.output).toContain("begun");
    runtime.signal("SIGTERM");
    const late = () => runtime.call("/", { headers: { connection: "keep-alive" } });
    await expect.poll(late).toMatchObject({ status: 200, headers: { connection: "close" } });
    expect((await slow).body).toBe("fine");
    await idleClosed;
    expect(await runtime.exited).toBe(0);
    expect(runtime.output).toContain("atexit ran");
  });

  test("ends a runtime that is still loading", async () => {
    await using runtime = await PythonRuntime.launch(
      "import time\nprint('loading')\ntime.sleep(60)",
    );
    await expect.poll(() => runtime.output).toContain("loading");
    runtime.signal("SIGTERM");
    expect(await runtime.exited).toBe(0);
  });
});

test.skipIf(missingPython)("what a handler prints is there at once", async () => {
  await using runtime = await PythonRuntime.start(
    "import sys\ndef main(event, context):\n    print('out')\n    print('err', file=sys.stderr)\n    return ''",
    { KYMA_INTERNAL_LOGGER_ENABLED: "" },
  );
  await runtime.call("/path?q", { headers: { "user-agent": 'me "too"' } });
  await expect.poll(() => runtime.output).toMatch(/out\n/);
  await expect.poll(() => runtime.output).toMatch(/err\n/);
  await expect
    .poll(() => runtime.output)
    .toMatch(/ "GET \/path\?q HTTP\/1\.1" 200 - "-" "me \\"too\\""/);
});
