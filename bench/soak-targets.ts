/** The Functions that are soaked: the same paths in every language. */
import { layOut, makeRuntime, startServer } from "./runtime-server.ts";
import { memoryOfTree } from "./memory.ts";
import { layOutPython, startPython } from "./python-server.ts";

/** By what is measured. Of names that begin with `resident` level is enough; of the rest nothing may stay. */
export type SoakSample = Record<string, number>;

export interface SoakServer {
  port: number;
  sample(): Promise<SoakSample>;
  stop(): Promise<void>;
}

const nodejs = `
const { setTimeout: sleep } = require("node:timers/promises");
const paths = {
  "/memory": () => { gc(); const { heapUsed, rss, external } = process.memoryUsage(); return { heapUsed, rss, external }; },
  "/throw": () => { throw new Error("thrown"); },
  "/reject": async () => { await null; throw "rejected"; },
  "/never": () => new Promise(() => {}),
  "/timer": () => { setTimeout(() => { throw new Error("in a timer"); }); return "ok"; },
  "/unhandled": () => { Promise.reject(new Error("nobody listens")); return "ok"; },
  "/stream": async function* () { for (let n = 0; n < 20; n++) { yield "x".repeat(1000); await sleep(1); } },
  "/response": () => new Response("text", { headers: { "x-a": "1" } }),
};
exports.main = (event, context) => {
  const { path } = event.extensions.request;
  return paths[path] ? paths[path](event, context) : { data: event.data ?? null, aborted: context.signal.aborted };
};
exports.websocket = (socket) => { socket.onmessage = ({ data }) => socket.send(data); };
`;

/** A call that never ends costs a process with `def`, so only the other two have one. */
const python = `
import gc, sys, threading
from bottle import HTTPResponse

def memory():
    gc.collect()
    return {"blocks": sys.getallocatedblocks()}

def throw():
    raise ValueError("thrown")

def timer():
    def fail():
        raise ValueError("in a timer")
    threading.Timer(0.01, fail).start()
    return "ok"

def stream():
    for _ in range(20):
        yield "x" * 1000

paths = {
    "/memory": memory, "/throw": throw, "/reject": throw, "/timer": timer, "/unhandled": timer, "/stream": stream,
    "/response": lambda: HTTPResponse("text", 200, headers={"x-a": "1"}),
}

def main(event, context):
    request = event["extensions"]["request"]
    event.tracer.start_span("mine").end()
    return paths[request.path]() if request.path in paths else {"data": str(event.get("data")), "query": dict(request.query)}
`;

const pythonAsync = `
import asyncio
${python.replace("def main", "def call")}
async def never():
    await asyncio.Event().wait()

async def fail():
    raise ValueError("nobody listens")

async def unhandled():
    asyncio.ensure_future(fail())
    asyncio.get_running_loop().call_later(0.01, throw)
    return "ok"

async def stream():
    for _ in range(20):
        yield "x" * 1000
        await asyncio.sleep(0.001)

async def main(event, context):
    path = event["extensions"]["request"].path
    if path == "/stream":
        return stream()
    if path in ("/never", "/unhandled"):
        return await {"/never": never, "/unhandled": unhandled}[path]()
    return call(event, context)
`;

const pythonAsgi = `
${pythonAsync.replace("async def main(event, context)", "async def _unused(event, context)")}
import json

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message.get("text") or ""})
        return
    path, body, more = scope["path"], b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    if path == "/never":
        await never()
    if path in ("/throw", "/reject"):
        throw()
    if path in ("/timer", "/unhandled"):
        await unhandled()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
    if path == "/stream":
        async for piece in stream():
            await send({"type": "http.response.body", "body": piece.encode(), "more_body": True})
    answer = memory() if path == "/memory" else {"length": len(body)}
    await send({"type": "http.response.body", "body": json.dumps(answer).encode()})
`;

export const soakTargets: Record<
  string,
  (dir: string, env: Record<string, string>) => SoakServer | Promise<SoakServer>
> = {
  nodejs: async (dir, env) => {
    const file = layOut(dir, await makeRuntime(), { "handler.js": nodejs });
    // As of a container with 128 MiB: without, Node.js keeps what its young generation ever grew to.
    const NODE_OPTIONS = "--max-old-space-size=76 --max-semi-space-size=4";
    const all = { FUNC_TIMEOUT: "2", NODE_OPTIONS, ...env };
    const server = startServer(file, all, { flags: ["--expose-gc"] });
    const sample = async () => {
      const { heapUsed, external, rss } = await readMemory(server.port);
      const heap = ((heapUsed ?? NaN) + (external ?? NaN)) / 2 ** 20;
      return { "heap after a collection, MB": heap, "resident, MB": (rss ?? NaN) / 2 ** 20 };
    };
    return { ...server, sample };
  },
  python: (dir, env) => soakPython(dir, env, python),
  "python-async": (dir, env) => soakPython(dir, env, pythonAsync),
  "python-asgi": (dir, env) => soakPython(dir, env, pythonAsgi),
};

function soakPython(dir: string, env: Record<string, string>, handler: string): SoakServer {
  const file = layOutPython(dir, handler);
  const server = startPython("python3", file, {
    FUNC_TIMEOUT: "5",
    FUNC_BODY_MB_LIMIT: "1",
    ...env,
  });
  const sample = async () => {
    const { blocks } = await readMemory(server.port);
    return {
      "thousand blocks": (blocks ?? NaN) / 1000,
      "resident, MB": memoryOfTree(server.pid) / 2 ** 20,
    };
  };
  return { ...server, sample };
}

async function readMemory(port: number): Promise<Record<string, number>> {
  const answer = await fetch(`http://127.0.0.1:${port}/memory`);
  return (await answer.json()) as Record<string, number>;
}
