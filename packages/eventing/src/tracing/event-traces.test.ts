/** Spans as a collector gets them, over HTTP. */
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { silentLogger } from "@spry/kube";
import { type Message } from "@spry/queue";
import { expect, onTestFinished, test } from "vitest";
import { EventTraces } from "./event-traces.ts";
import { SpanExporter } from "./span-exporter.ts";

const trace = "0af7651916cd43dd8448eb211c80319c";
const traceparent = `00-${trace}-b7ad6b7169203331-01`;

interface Sent {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: object;
}

async function collector() {
  const spans: Sent[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      expect([request.url, request.headers["content-type"]]).toEqual([
        "/v1/traces",
        "application/json",
      ]);
      const { resourceSpans } = JSON.parse(body) as {
        resourceSpans: { scopeSpans: { spans: Sent[] }[] }[];
      };
      spans.push(...resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((s) => s.spans)));
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  const exporter = new SpanExporter(() => `http://127.0.0.1:${port}`, silentLogger);
  return { spans, exporter, traces: new EventTraces(exporter) };
}

const eventOf = (more: Record<string, string> = {}) => ({
  attributes: { id: "1", type: "order.created.v1", source: "shop", ...more },
  data: new Uint8Array(),
});
const messageOf = (attributes: Record<string, string>): Message => ({
  position: 1,
  at: Date.now() - 1_000,
  subject: "s",
  key: "k",
  attributes,
  body: new Uint8Array(),
});
const delivery = { subscription: "shop/orders", attempt: 1 };

test("publishing, the wait and the delivery of an event are spans of its publisher's trace", async () => {
  const { spans, exporter, traces } = await collector();
  const publishing = traces.publishing([eventOf({ traceparent })]);
  publishing.end();
  const [event] = publishing.events;
  // The event keeps what it began with.
  expect(event?.attributes).toMatchObject({ traceparent });
  const span = traces.delivering(messageOf(event?.attributes ?? {}), delivery);
  span?.end();
  await exporter.flush();
  expect(spans.map(({ name, traceId, parentSpanId }) => [name, traceId, parentSpanId])).toEqual([
    ["publish order.created.v1", trace, "b7ad6b7169203331"],
    ["wait in the queue", trace, "b7ad6b7169203331"],
    ["deliver order.created.v1", trace, "b7ad6b7169203331"],
  ]);
  // The sink's own spans are children of the delivery.
  expect(span?.traceparent).toBe(`00-${trace}-${spans[2]?.spanId}-01`);
  const [, wait] = spans;
  const lasted = BigInt(wait?.endTimeUnixNano ?? 0) - BigInt(wait?.startTimeUnixNano ?? 0);
  expect(Number(lasted) / 1e6).toBeGreaterThanOrEqual(990);
});

test("an event of no trace begins one with its publishing", async () => {
  const { spans, exporter, traces } = await collector();
  const publishing = traces.publishing([eventOf()]);
  publishing.end("the queue is full");
  await exporter.flush();
  const [root] = spans;
  expect(root).toMatchObject({ status: { code: 2, message: "the queue is full" } });
  expect(root?.parentSpanId).toBeUndefined();
  const began = `00-${root?.traceId}-${root?.spanId}-01`;
  expect(publishing.events[0]?.attributes).toMatchObject({ traceparent: began });
});

test("a trace that is not recorded has no spans, and is passed on as such", async () => {
  const { spans, exporter, traces } = await collector();
  const unrecorded = traceparent.replace(/01$/, "00");
  const publishing = traces.publishing([eventOf({ traceparent: unrecorded })]);
  publishing.end();
  const span = traces.delivering(messageOf({ traceparent: unrecorded }), delivery);
  span?.end();
  await exporter.flush();
  expect(spans).toEqual([]);
  expect(span?.traceparent).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-00$`));
});

test("without a collector events are left as they are", () => {
  const traces = new EventTraces(new SpanExporter(() => undefined, silentLogger));
  expect(traces.publishing([eventOf()]).events).toEqual([eventOf()]);
  expect(traces.delivering(messageOf({ traceparent }), delivery)).toBeUndefined();
});
