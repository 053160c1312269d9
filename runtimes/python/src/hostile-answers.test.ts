/** Answers that no handler should make: somebody waits for each, and the next one on the same connection is whole. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missingPython, PythonRuntime } from "./testing.ts";

const pieces = `
import array, asyncio

def fail(error): raise error

def pieces(path):
    yield {"/number": 5, "/object": {"a": 1}, "/items": memoryview(array.array("I", [1, 2, 3]))}.get(path) or fail(ValueError("first"))
`;

const asynchronous = `
async def main(event, context):
    path = event["extensions"]["request"].path
    if path == "/cancelled": raise asyncio.CancelledError()
    if path == "/cancels-itself":
        asyncio.current_task().cancel()
        await asyncio.sleep(60)
    if path == "/awaits-what-is-cancelled":
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task
    return "fine" if path == "/" else pieces(path)
`;

const generator = `
async def main(event, context):
    path = event["extensions"]["request"].path
    if path == "/cancelled": raise asyncio.CancelledError()
    if path == "/": yield "fine"
    else:
        for piece in pieces(path): yield piece
`;

const asgi = `
async def app(scope, receive, send):
    if scope["type"] != "http": raise NotImplementedError
    path = scope["path"]
    if path == "/cancelled": raise asyncio.CancelledError()
    status = {"/text-status": "200", "/interim": 100, "/switching": 101, "/negative": -5, "/large": 99999}.get(path, 200)
    headers = [(b"content-length", b"-1")] if path == "/length" else []
    body = {"/text": "text", "/none": None, "/items": memoryview(array.array("I", [1, 2, 3]))}.get(path, b"fine")
    await send({"type": "http.response.start", "status": status, "headers": headers})
    if path == "/no-body": return
    await send({"type": "http.response.body", "body": body, "more_body": path in ("/length", "/items")})
    if path in ("/length", "/items"): await send({"type": "http.response.body"})
`;

const wsgi = `
def late(start_response):
    yield b""
    start_response("201 Made", [])
    yield b"late"

def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/late": return late(start_response)
    if path != "/never": start_response({"/interim": "100 x", "/negative": "-1 x", "/large": "99999 x"}.get(path, "200 OK"), [])
    return {"/text": ["text"], "/bare": b"bare", "/none": None, "/first": pieces(path)}.get(path, [b"fine"])
`;

/** With the paths that are 500. */
const forms: [name: string, code: string, failing: string[]][] = [
  [
    "def main",
    `def main(event, context):
    path = event["extensions"]["request"].path
    return "fine" if path == "/" else pieces(path)`,
    ["/first", "/number", "/object"],
  ],
  [
    "async def main",
    asynchronous,
    ["/first", "/number", "/object", "/cancelled", "/cancels-itself", "/awaits-what-is-cancelled"],
  ],
  ["async def main, a generator", generator, ["/first", "/number", "/object", "/cancelled"]],
  [
    "an ASGI application",
    asgi,
    [
      "/text",
      "/none",
      "/no-body",
      "/length",
      "/cancelled",
      "/text-status",
      "/interim",
      "/switching",
      "/negative",
      "/large",
    ],
  ],
  [
    "a WSGI application",
    wsgi,
    ["/text", "/bare", "/none", "/first", "/never", "/interim", "/negative", "/large"],
  ],
];

describe.skipIf(missingPython).each(forms)("%s", (_name, code, failing) => {
  let runtime: PythonRuntime;
  beforeAll(async () => {
    runtime = await PythonRuntime.start(pieces + code);
  });
  afterAll(() => runtime.stop());

  const get = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;

  test.each(failing)("that makes the answer %s is 500", async (path) => {
    const answer = await runtime.raw(get(path) + get("/", "Connection: close\r\n"));
    expect(answer.match(/HTTP\/1\.1 -?\d+/g)).toEqual(["HTTP/1.1 500", "HTTP/1.1 200"]);
    expect(answer).toContain("Internal server error");
    expect(answer).not.toContain("Error:");
  });

  // Of WSGI, PEP 3333 wants bytes.
  test.skipIf(code === wsgi)("sends items larger than a byte whole", async () => {
    expect((await runtime.call("/items")).body).toHaveLength(12);
    expect((await runtime.call("/")).body).toBe("fine");
  });
});

test.skipIf(missingPython)("a WSGI application may begin with nothing", async () => {
  await using runtime = await PythonRuntime.start(pieces + wsgi);
  expect(await runtime.call("/late")).toMatchObject({ status: 201, body: "late" });
});

const events: [form: string, code: string][] = [
  ["def", "import threading as concurrency\ndef events():\n    released.wait()"],
  ["async def", "import asyncio as concurrency\nasync def events():\n    await released.wait()"],
];

test.skipIf(missingPython).each(events)(
  "%s: who listens to events has the head before the first of them",
  async (form, generator) => {
    await using runtime = await PythonRuntime.start(`${generator}
    yield "data: 1"
released = concurrency.Event()
${form} main(event, context):
    if event["extensions"]["request"].path == "/release": return released.set()
    return events(), 200, {"content-type": "text/event-stream"}
`);
    const socket = runtime.connect();
    socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    const [head] = (await once(socket, "data")) as [Buffer];
    expect(head.toString()).toMatch(
      /^HTTP\/1\.1 200 OK\r\ncontent-type: text\/event-stream[^]*\r\n\r\n$/,
    );
    await runtime.call("/release");
    let rest = "";
    for await (const data of socket) rest += String(data);
    expect(rest).toContain("data: 1");
  },
);
