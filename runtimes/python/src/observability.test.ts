import { describe, expect, test } from "vitest";
import { startCollector, traceId } from "./collector.ts";
import { missingPython, PythonRuntime } from "./testing.ts";

const noisy = `
import logging, sys
def main(event, context):
    print("out", 1)
    print("err", file=sys.stderr)
    logging.warning("careful")
    raise ValueError("broken")
`;
const forms: [name: string, code: string][] = [
  ["def main", noisy],
  ["async def main", noisy.replace("def main", "async def main")],
];

describe.skipIf(missingPython)("formatted logs", () => {
  test.each(forms)("of %s are JSON lines with the invocation's id", async (_name, code) => {
    await using runtime = await PythonRuntime.start(code, { FUNC_LOG_FORMAT: "json" });
    await runtime.call("/", { headers: { "x-request-id": "call-1" } });
    const lines = () => runtime.output.trim().split("\n");
    await expect.poll(() => lines().length).toBe(4);
    const made = lines().map((line) => JSON.parse(line) as Record<string, string>);
    const of = (message: RegExp) => made.find((each) => message.test(each["message"] ?? ""));
    expect(of(/^out 1$/)).toMatchObject({ level: "info", invocation: "call-1" });
    expect(of(/^err$/)).toMatchObject({ level: "error", invocation: "call-1" });
    expect(of(/careful$/)).toMatchObject({ level: "warn", invocation: "call-1" });
    expect(of(/ValueError: broken$/)).toMatchObject({ level: "error", invocation: "call-1" });
    for (const { time } of made) expect(time).toMatch(/^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z$/);
  });

  test("can be text, and an id that could forge a line is replaced", async () => {
    await using runtime = await PythonRuntime.start("def main(event, context): print('out')", {
      FUNC_LOG_FORMAT: "text",
    });
    await runtime.call("/", { headers: { "x-request-id": "a b" } });
    await expect.poll(() => runtime.output).toMatch(/^\S+Z INFO {2}\[[\da-f-]{36}\] out\n$/);
  });

  test("hold load errors too", async () => {
    await using runtime = await PythonRuntime.launch("1 / 0", { FUNC_LOG_FORMAT: "json" });
    expect(await runtime.exited).toBe(1);
    expect(JSON.parse(runtime.output)).toMatchObject({
      level: "error",
      message: expect.stringMatching(
        /^loading handler\.py: ZeroDivisionError: [^]*handler\.py", line 1/,
      ),
    });
  });
});

const traced = `
def main(event, context):
    with event.tracer.start_as_current_span("work", attributes={"n": 1}) as span:
        span.add_event("half")
        inside = event.tracer.headers()["x-b3-spanid"]
    if event["extensions"]["request"].path == "/fail":
        raise ValueError("broken")
    return {"inside": inside, "outside": event.tracer.headers()["x-b3-spanid"]}
`;

describe.skipIf(missingPython)("spans", () => {
  test.each([
    ["def main", traced],
    ["async def main", traced.replace("def main", "async def main")],
  ])("of %s are sent with those that it makes", async (_name, code) => {
    const { endpoint, spans } = await startCollector();
    await using runtime = await PythonRuntime.start(code, { TRACE_COLLECTOR_ENDPOINT: endpoint });
    const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
    const { inside, outside } = JSON.parse((await runtime.call("/a", { headers })).body);
    await expect.poll(() => spans.length).toBe(2);
    expect(spans.find(({ name }) => name === "work")).toMatchObject({
      traceId,
      spanId: inside,
      parentSpanId: outside,
      kind: 1,
      attributes: [{ key: "n", value: { intValue: "1" } }],
      events: [{ name: "half" }],
    });
    const server = spans.find(({ name }) => name === "GET");
    expect(server).toMatchObject({ traceId, spanId: outside, parentSpanId: "b7ad6b7169203331" });
    expect(server).toMatchObject({ kind: 2, status: {} });
    expect(server?.attributes).toContainEqual({ key: "url.path", value: { stringValue: "/a" } });
  });

  test("of failures say so, unsampled ones stay, and the last leave at the end", async () => {
    const { endpoint, spans } = await startCollector();
    await using runtime = await PythonRuntime.start(traced, { TRACE_COLLECTOR_ENDPOINT: endpoint });
    await runtime.call("/", { headers: { "x-b3-sampled": "0" } });
    await runtime.call("/fail");
    runtime.signal("SIGTERM");
    expect(await runtime.exited).toBe(0);
    expect(spans.map(({ name }) => name).toSorted()).toEqual(["GET", "work"]);
    expect(spans.find(({ name }) => name === "GET")?.status).toEqual({ code: 2 });
  });

  test("whose collector is away cost the Function nothing but a line of its log", async () => {
    await using runtime = await PythonRuntime.start(traced, {
      TRACE_COLLECTOR_ENDPOINT: "http://127.0.0.1:1",
    });
    expect((await runtime.call()).status).toBe(200);
    await expect.poll(() => runtime.output).toContain("exporting spans to http://127.0.0.1:1: ");
    expect((await runtime.call()).status).toBe(200);
  });
});

test.skipIf(missingPython)(
  "a call that comes while http.client is being imported is answered",
  async () => {
    await using runtime = await PythonRuntime.start(`
import sys, types
sys.modules["http.client"] = types.ModuleType("http.client")
def main(event, context):
    return "fine"
`);
    expect((await runtime.call()).body).toBe("fine");
  },
);
