/** What a caller has to ask about is in the log with the id that the caller has; and whose paths the runtime answers. */
import { describe, expect, test } from "vitest";
import { missingPython, PythonRuntime } from "./testing.ts";

const handlers = {
  sync: `
import os, signal, time
def main(event, context):
    path = event["extensions"]["request"].path
    if path == "/throw": raise ValueError("thrown")
    if path == "/end": os.kill(os.getpid(), signal.SIGKILL)
    if path == "/slow": time.sleep(60)
    return "fine"
`,
  async: `
import asyncio
async def main(event, context):
    path = event["extensions"]["request"].path
    if path == "/throw": raise ValueError("thrown")
    if path == "/slow": await asyncio.sleep(60)
    return "fine"
`,
};
const as = (id: string) => ({ headers: { "x-request-id": id } });
const limits = { FUNC_TIMEOUT: "1", FUNC_BODY_MB_LIMIT: "1" };

describe.skipIf(missingPython).each(Object.entries(handlers))("a %s handler", (kind, source) => {
  test("is logged with the request's id", async () => {
    await using runtime = await PythonRuntime.start(source, limits);
    const logged = (text: string) => expect.poll(() => runtime.output).toContain(text);
    expect(await runtime.call("/slow?secret=1", as("late-1"))).toMatchObject({
      status: 408,
      headers: { "x-request-id": "late-1" },
    });
    await logged("request late-1 (GET /slow): no response within FUNC_TIMEOUT (1 s)");
    const body = "x".repeat(2 * 1024 * 1024);
    expect(await runtime.call("/", { method: "POST", body, ...as("large-1") })).toMatchObject({
      status: 413,
      headers: { "x-request-id": "large-1" },
    });
    await logged("request large-1 (POST /): the request body is larger than its limit");
    // CSI in one character, which clears the screen of some terminals, and a soft hyphen.
    const head = "POST /\u009b2J\u00ad HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000\r\n\r\n";
    expect(await runtime.raw(head)).toContain(" 413 ");
    await logged("(POST /\uFFFD2J\uFFFD): the request body is larger than its limit");
    const thrown = await runtime.call("/throw");
    expect(thrown.status).toBe(500);
    const id = thrown.headers["x-request-id"];
    await logged(`request ${id?.toString()} (GET /throw): calling the function\nTraceback`);
    if (kind === "sync") {
      expect((await runtime.call("/end", as("end-1"))).status).toBe(500);
      await logged(
        "request end-1 (GET /end): the process that was handling it ended (signal SIGKILL",
      );
    }
    expect(runtime.output).not.toContain("secret");
  });
});

const applications = {
  WSGI: `def app(environ, start_response):
    start_response("200 OK", [])
    return [environ["PATH_INFO"].encode()]
`,
  ASGI: `async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": scope["path"].encode()})
`,
};

test.skipIf(missingPython).each(Object.entries(applications))(
  "%s: an application answers its own paths, except to probes and scrapers",
  async (_, source) => {
    await using runtime = await PythonRuntime.start(source);
    for (const path of ["/healthz", "/metrics", "/favicon.ico"])
      expect((await runtime.call(path)).body).toBe(path);
    const probe = { headers: { "user-agent": "kube-probe/1.36" } };
    expect((await runtime.call("/healthz", probe)).body).toBe("OK");
    const scrape = { "x-prometheus-scrape-timeout-seconds": "10" };
    expect((await runtime.call("/metrics", { headers: scrape })).body).toContain("calls_total");
    const outside = { headers: { ...scrape, "x-forwarded-for": "192.0.2.1" } };
    expect((await runtime.call("/metrics", outside)).body).toBe("/metrics");
  },
);
