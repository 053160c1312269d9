/** Handlers in the style of Knative's func, as its documents write them, and applications. */
import { describe, expect, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { installPackages, missingPython, PythonRuntime } from "./testing.ts";

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
    def alive(self):
        return True, "Alive"
    def ready(self):
        return False
    async def handle(self, scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": [[b"content-type", b"text/plain"]]})
        await send({"type": "http.response.body", "body": f"{self.started}".encode()})
`;

const event = { "ce-specversion": "1.0", "ce-type": "made", "ce-source": "/me", "ce-id": "7" };
const json = { "content-type": "application/json" };

const rows: Row[] = [
  {
    name: "main(environ, start_response)",
    files: {
      "func.py": `
def main(environ, start_response):
    start_response("202 Accepted", [("Content-Type", "text/plain")])
    return [environ["PATH_INFO"].encode()]`,
    },
    target: "/wsgi",
    status: 202,
    body: "/wsgi",
  },
  { name: "func, an instance", files: { "func.py": func }, body: "hello" },
  { name: "func, alive", files: { "func.py": func }, target: "/health/liveness", body: "Alive" },
  {
    name: "func, not ready",
    files: { "func.py": func },
    target: "/health/readiness",
    status: 500,
    body: "OK",
  },
  {
    name: "func, handle alone",
    files: { "func.py": `${func.replace(/def new[^]*?pass/, "")}\nhandle = new().handle\ndel new` },
    body: "False",
  },
];

describe.skipIf(missingPython)("a handler of Knative's func", () => {
  test.each(rows)("$name", expectAnswer);

  test("whose new() fails does not start, and says why", async () => {
    const runtime = await PythonRuntime.launch({
      "func.py": `def new(): raise RuntimeError("no configuration")`,
    });
    await using _ = runtime;
    expect(await runtime.exited).toBe(1);
    expect(runtime.output).toContain("loading func.py: RuntimeError: no configuration");
  });

  const cloudEvents = installPackages("cloudevents==2.0.0");
  test.skipIf(!cloudEvents)(
    "func with events of the package cloudevents, which pip installs",
    { timeout: 90_000 },
    async () => {
      const code = `
from cloudevents.core.v1.event import CloudEvent
async def handle(scope, receive, send):
    event = scope["event"]
    answer = CloudEvent(attributes={"type": "answer", "source": "/f", "id": event.get_id(), "datacontenttype": "application/json"}, data=event.get_data())
    await (send.binary if scope["path"] == "/binary" else send)(answer)
`;
      await using runtime = await PythonRuntime.start(
        { "func.py": code },
        { PYTHONPATH: cloudEvents ?? "" },
      );
      const call = { method: "POST", headers: { ...event, ...json }, body: '{"a":1}' };
      const structured = await runtime.call("/", call);
      expect(structured.headers["content-type"]).toBe("application/cloudevents+json");
      expect(JSON.parse(structured.body)).toMatchObject({
        type: "answer",
        id: "7",
        data: { a: 1 },
      });
      const binary = await runtime.call("/binary", call);
      expect(binary).toMatchObject({ headers: { "ce-type": "answer" }, body: '{"a": 1}' });
      expect(await runtime.call()).toMatchObject({
        status: 400,
        body: "malformed CloudEvent: the request is not a CloudEvent\n",
      });
      const broken = {
        method: "POST",
        headers: { "content-type": "application/cloudevents+json" },
        body: "{",
      };
      expect((await runtime.call("/", broken)).status).toBe(400);
    },
  );
});
