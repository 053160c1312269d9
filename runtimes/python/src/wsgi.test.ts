/** WSGI applications: lengths of bodies, and objects that pass on any arguments. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { missingPython, PythonRuntime } from "./testing.ts";

/** `/list` and `/stream`: how the body is returned; `says` and `has` in the query: its lengths. */
const application = `
from urllib.parse import parse_qs
def app(environ, start_response):
    query = parse_qs(environ["QUERY_STRING"])
    headers = [("Content-Length", query["says"][0])] if "says" in query else []
    start_response("304 Not Modified" if environ["PATH_INFO"] == "/same" else "200 OK", headers)
    size = int(query["has"][0])
    pieces = [b"x" * size] if environ["PATH_INFO"] == "/list" else [b"x" for _ in range(size)]
    if environ["REQUEST_METHOD"] == "HEAD": pieces = []
    return pieces if environ["PATH_INFO"] == "/list" else iter(pieces)
`;

describe.skipIf(missingPython)("a WSGI application", () => {
  let runtime: PythonRuntime;
  beforeAll(async () => {
    runtime = await PythonRuntime.start(application);
  });
  afterAll(() => runtime.stop());

  const ask = (target: string, method = "GET") =>
    runtime.raw(`${method} ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);

  test.each(["/list", "/stream"])("has the length that it says: %s", async (path) => {
    const answer = await ask(`${path}?says=4&has=4`);
    expect(answer).toMatch(/\r\ncontent-length: 4\r\n[^]*\r\n\r\nxxxx$/);
    expect(answer).not.toContain("chunked");
  });

  test("that says no length is chunked unless its body is whole", async () => {
    expect(await ask("/stream?has=2")).toContain("transfer-encoding: chunked");
    expect(await ask("/list?has=2")).toMatch(/\r\ncontent-length: 2\r\n[^]*\r\n\r\nxx$/);
  });

  test.each(["/list", "/stream"])("says the length of HEAD, without a body: %s", async (path) => {
    const answer = await ask(`${path}?says=400&has=400`, "HEAD");
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*content-length: 400\r\n[^]*\r\n\r\n$/);
  });

  test.each(["/list", "/stream"])(
    "whose body is shorter is an aborted response: %s",
    async (path) => {
      await expect(runtime.call(`${path}?says=9&has=4`)).rejects.toThrow("aborted");
    },
  );

  test.each(["/list", "/stream"])("whose body is longer is cut: %s", async (path) => {
    expect((await runtime.call(`${path}?says=2&has=4`)).body).toBe("xx");
  });

  test("says no length without a body", async () => {
    expect(await ask("/same?says=4&has=0")).not.toContain("content-length");
  });

  test("whose length is not a number is 500", async () => {
    expect((await runtime.call("/list?says=many&has=4")).status).toBe(500);
  });
});

const inner = `
def inner(environ, start_response):
    start_response("200 OK", [])
    return [b"inner " + environ["PATH_INFO"].encode()]
`;
const asynchronous = `
async def inner(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inner " + scope["path"].encode()})
`;
const middleware = `
class Middleware:
    def __init__(self, app): self.wrapped = app
    def __call__(self, *args, **kwargs): return self.wrapped(*args, **kwargs)
`;
const refused = `
class Anything:
    def __call__(self, *args): raise TypeError
app = Anything()
`;

const rows: Row[] = [
  {
    name: "WSGI",
    files: { "app.py": `${inner + middleware}app = Middleware(inner)` },
    body: "inner /a",
  },
  {
    name: "two of them",
    files: { "app.py": `${inner + middleware}app = Middleware(Middleware(inner))` },
    body: "inner /a",
  },
  {
    name: "ASGI",
    files: { "app.py": `${asynchronous + middleware}app = Middleware(inner)` },
    body: "inner /a",
  },
  {
    name: "a function",
    files: {
      "app.py": `${inner}
def logged(app):
    def call(*args): return app(*args)
    return call
app = logged(inner)`,
    },
    body: "inner /a",
  },
];

describe.skipIf(missingPython)("middleware that passes on any arguments", () => {
  test.each(rows.map((row) => ({ target: "/a", ...row })))(
    "speaks what it holds: $name",
    expectAnswer,
  );

  test("that shows nothing of its protocol is refused", async () => {
    await using runtime = await PythonRuntime.launch(refused);
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toMatch(
      /^loading handler\.py: app is an object of the class Anything that takes any arguments/,
    );
  });
});

/** Packages of these names, with as much in them as the real ones show. */
test.skipIf(missingPython).each([
  ["aiohttp", "aiohttp.web_app", "aiohttp"],
  ["Tornado", "tornado.web", "Tornado"],
])("an application of %s is refused, which has its own server", async (_, module, name) => {
  await using runtime = await PythonRuntime.launch(`
class Application:
    def __call__(self): return self
Application.__module__ = "${module}"
app = Application()
`);
  expect(await runtime.exited).toBe(1);
  expect(runtime.output).toContain(
    `can only be called by ${name}'s own server, which Spry does not run`,
  );
});
