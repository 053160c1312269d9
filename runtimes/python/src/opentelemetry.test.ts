import { describe, expect, test } from "vitest";
import { caller, startCollector, traceId } from "./collector.ts";
import { installPackages, missingPython, PythonRuntime } from "./testing.ts";

const packages = installPackages("opentelemetry-sdk==1.45.2");

/** `work` is a decorator and a context; `traceparent` is what a request from inside would carry. */
const code = `
from opentelemetry import baggage, trace, propagate
tracer = trace.get_tracer("mine")

@tracer.start_as_current_span("decorated")
def decorated():
    return trace.get_current_span().get_span_context().span_id

def main(event, context):
    invocation = trace.get_current_span()
    invocation.set_attribute("app.user", "ada")
    with tracer.start_as_current_span("work", kind=trace.SpanKind.CLIENT, attributes={"n": [1, 2.5]}) as span:
        span.add_event("half", {"done": True})
        decorated()
        carried = {}
        propagate.inject(carried)
        ours = event.tracer.start_span("by event")
        ours.end()
    if event["extensions"]["request"].path == "/fail":
        with tracer.start_as_current_span("broken"):
            raise ValueError("no")
    return {**carried, "baggage": baggage.get_baggage("who")}
`;

const own = `
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=lambda span: f"SPAN {span.name} {span.context.trace_id:032x} {span.parent.span_id:016x}\\n")))
trace.set_tracer_provider(provider)

def main(event, context):
    with trace.get_tracer("mine").start_as_current_span("own"):
        pass
    return event.tracer.__class__.__module__
`;

describe.skipIf(missingPython ?? (packages ? undefined : "opentelemetry-api cannot be installed"))(
  "a Function with the opentelemetry package",
  () => {
    const env = { PYTHONPATH: packages ?? "" };

    test.each(["def main", "async def main"])(
      "makes children of the invocation's span in %s",
      async (form) => {
        const { endpoint, spans } = await startCollector();
        await using runtime = await PythonRuntime.start(code.replace("def main", form), {
          ...env,
          TRACE_COLLECTOR_ENDPOINT: endpoint,
        });
        const headers = { traceparent: `00-${traceId}-${caller}-01`, baggage: "who=me" };
        const carried = (await runtime.json("/", { headers })) as Record<string, string>;
        await expect.poll(() => spans.length).toBe(4);
        const [invocation, work, decorated, event] = ["GET", "work", "decorated", "by event"].map(
          (name) => spans.find((each) => each.name === name),
        );
        expect(invocation).toMatchObject({ traceId, parentSpanId: caller, kind: 2, status: {} });
        expect(invocation?.attributes).toContainEqual({
          key: "app.user",
          value: { stringValue: "ada" },
        });
        expect(work).toMatchObject({ traceId, parentSpanId: invocation?.spanId, kind: 3 });
        expect(work?.events).toMatchObject([{ name: "half" }]);
        expect(decorated).toMatchObject({ traceId, parentSpanId: work?.spanId, kind: 1 });
        expect(event).toMatchObject({ traceId, parentSpanId: work?.spanId });
        expect(carried["traceparent"]).toBe(`00-${traceId}-${work?.spanId}-01`);
        expect(carried["baggage"]).toBe("me");
      },
    );

    test("has its errors in the spans, and nothing of one call in the next", async () => {
      const { endpoint, spans } = await startCollector();
      await using runtime = await PythonRuntime.start(code, {
        ...env,
        TRACE_COLLECTOR_ENDPOINT: endpoint,
      });
      expect((await runtime.call("/fail")).status).toBe(500);
      expect((await runtime.call("/")).status).toBe(200);
      await expect.poll(() => spans.filter(({ name }) => name === "GET").length).toBe(2);
      const broken = spans.find(({ name }) => name === "broken");
      expect(broken).toMatchObject({ status: { code: 2, message: "ValueError: no" } });
      expect(broken?.events).toMatchObject([{ name: "exception" }]);
      const [failed, fine] = spans.filter(({ name }) => name === "GET");
      expect([failed?.status.code, fine?.status.code]).toEqual([2, undefined]);
      expect(fine?.traceId).not.toBe(failed?.traceId);
    });

    test("may have a tracer provider of its own", async () => {
      await using runtime = await PythonRuntime.start(own, env);
      const headers = { traceparent: `00-${traceId}-${caller}-01` };
      expect((await runtime.call("/", { headers })).body).toMatch(/^opentelemetry\.sdk/);
      await expect
        .poll(() => runtime.output)
        .toMatch(new RegExp(`SPAN own ${traceId} (?!${caller})[0-9a-f]{16}\n`));
    });
  },
);
