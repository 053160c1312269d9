/** Programs that start a server while they are loaded, without the question whether they are the main one. */
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { installPackages, missingPython, PythonRuntime } from "./testing.ts";

const installed = installPackages(
  "flask==3.1.2",
  "uvicorn==0.38.0",
  "starlette==0.50.0",
  "waitress==3.0.2",
  "bottle==0.13.4",
);
const env = { PYTHONPATH: installed ?? "", PORT: "8080" };

const served: Row[] = [
  {
    name: "Flask's app.run(), on the port of the Function",
    files: {
      "main.py": `
from flask import Flask
app = Flask(__name__)
@app.route("/")
def hello(): return "flask"
app.run(host="0.0.0.0", port=8080, debug=True)`,
    },
    env,
    body: "flask",
  },
  {
    name: "the run() of an application that no name of the module has",
    files: {
      "main.py": `
import sys
from flask import Flask
def build():
    app = Flask("built")
    app.add_url_rule("/", view_func=lambda: "built")
    return app
sys.exit(build().run())`,
    },
    env,
    body: "built",
  },
  {
    name: "uvicorn.run() with an object",
    files: {
      "main.py": `
import os, uvicorn
async def site(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"uvicorn"})
uvicorn.run(site, host="0.0.0.0", port=int(os.environ["PORT"]))`,
    },
    env,
    body: "uvicorn",
  },
  {
    name: "uvicorn.run() with a name and a reloader",
    files: {
      "main.py": `
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
other = Starlette()
site = Starlette(routes=[Route("/", lambda request: PlainTextResponse("named"))])
uvicorn.run("main:site", reload=True)`,
    },
    env,
    body: "named",
  },
  {
    name: "a server that asyncio.run(main()) starts",
    files: {
      "main.py": `
import asyncio, uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
async def main():
    app = Starlette(routes=[Route("/", lambda request: PlainTextResponse("awaited"))])
    await uvicorn.Server(uvicorn.Config(app, port=9000)).serve()
asyncio.run(main())`,
    },
    env,
    body: "awaited",
  },
  {
    name: "waitress.serve() of a WSGI function",
    files: {
      "main.py": `
from waitress import serve
def site(environ, start_response):
    start_response("200 OK", [])
    return [b"waitress"]
serve(site, listen="*:8080")`,
    },
    env,
    body: "waitress",
  },
  {
    name: "bottle.run() of the default application",
    files: {
      "main.py": `
from bottle import route, run
@route("/")
def index(): return "bottle"
run(host="localhost", port=8080)`,
    },
    env,
    body: "bottle",
  },
  {
    name: "a server of wsgiref",
    files: {
      "main.py": `
from wsgiref.simple_server import make_server
def site(environ, start_response):
    start_response("200 OK", [])
    return [b"wsgiref"]
with make_server("", 0, site) as server:
    server.serve_forever()`,
    },
    body: "wsgiref",
  },
  {
    name: "main, next to a server of another thread",
    files: {
      "main.py": `
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
threading.Thread(target=HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler).serve_forever, daemon=True).start()
def main(event, context): return "main"`,
    },
    body: "main",
  },
  {
    name: "main, with a timer of its own that it sets while it is loaded",
    files: {
      "main.py": `
import signal, time
rings = []
signal.signal(signal.SIGALRM, lambda *_: rings.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
def main(event, context):
    until = time.monotonic() + 60
    while not rings and time.monotonic() < until: time.sleep(0.01)
    return str(rings[:1])`,
    },
    body: "[1]",
  },
  {
    name: "main, though a server is started after it",
    files: {
      "main.py": `
from flask import Flask
def main(event, context): return "main"
Flask("a").run()`,
    },
    env,
    body: "main",
  },
];

/** As much of the packages as their programs show. */
const refused: [name: string, files: Record<string, string>, message: string][] = [
  [
    "http.server",
    {
      "main.py": `
from http.server import BaseHTTPRequestHandler, HTTPServer
class Hello(BaseHTTPRequestHandler): pass
HTTPServer(("127.0.0.1", 0), Hello).serve_forever()`,
    },
    "it starts a server of socketserver or http.server with handlers of the class Hello while it is loaded",
  ],
  [
    "aiohttp",
    {
      "aiohttp/__init__.py": "",
      "aiohttp/web.py": "def run_app(app): raise SystemExit('it ran')",
      "main.py": "from aiohttp import web\nweb.run_app(None)",
    },
    "it starts a server of aiohttp while it is loaded",
  ],
  [
    "Tornado",
    {
      "tornado/__init__.py": "",
      "tornado/tcpserver.py":
        "class TCPServer:\n    def listen(self, port): raise SystemExit('it ran')",
      "main.py": "from tornado.tcpserver import TCPServer\nTCPServer().listen(8888)",
    },
    "it starts a server of Tornado while it is loaded",
  ],
  [
    "CherryPy",
    {
      "cherrypy/__init__.py": "def quickstart(root): raise SystemExit('it ran')",
      "main.py": "import cherrypy\ncherrypy.quickstart(object())",
    },
    "it starts a server of CherryPy while it is loaded",
  ],
  [
    "a socket of its own",
    {
      "main.py": `
import socket
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
while True: server.accept()`,
    },
    "by itself while it is loaded, in line 6 of main.py",
  ],
  [
    "asyncio",
    {
      "main.py": `
import asyncio
async def serve():
    async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0) as server: await server.serve_forever()
asyncio.run(serve())`,
    },
    "by itself while it is loaded, in line",
  ],
];

describe.skipIf(missingPython)("a program that starts a server while it is loaded", () => {
  test.each(served.filter((row) => installed !== undefined || !row.env))(
    "is served: $name",
    expectAnswer,
  );

  test.each(refused)("is refused where it cannot be called: %s", async (_, files, message) => {
    await using runtime = await PythonRuntime.launch(files);
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toContain(message);
    expect(runtime.output).toContain("define an application of WSGI or ASGI named app, or main");
  });

  test("is refused where it takes the runtime's port", async () => {
    await using runtime = await PythonRuntime.launch({
      "main.py": `
import os, socket
server = socket.socket()
server.bind(("127.0.0.1", int(os.environ["FUNC_PORT"])))`,
    });
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toContain(`port ${runtime.port} is the runtime's own`);
  });
});
