import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import protobuf from "protobufjs";
import { expect, onTestFinished } from "vitest";

/** Of opentelemetry-proto 1.x what a Function's spans use; all that it does not know here is lost. */
const { root } = protobuf.parse(`syntax = "proto3";
message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
message Resource { repeated KeyValue attributes = 1; }
message ScopeSpans { InstrumentationScope scope = 1; repeated Span spans = 2; }
message InstrumentationScope { string name = 1; }
message Span {
  bytes trace_id = 1;
  bytes span_id = 2;
  string trace_state = 3;
  bytes parent_span_id = 4;
  string name = 5;
  int32 kind = 6;
  fixed64 start_time_unix_nano = 7;
  fixed64 end_time_unix_nano = 8;
  repeated KeyValue attributes = 9;
  repeated Event events = 11;
  Status status = 15;
}
message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; }
message Status { string message = 2; int32 code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue {
  oneof value {
    string string_value = 1;
    bool bool_value = 2;
    int64 int_value = 3;
    double double_value = 4;
    ArrayValue array_value = 5;
  }
}
message ArrayValue { repeated AnyValue values = 1; }`);
const requestType = root.lookupType("ExportTraceServiceRequest");

interface KeyValue {
  key: string;
  value: Record<string, unknown>;
}

/** Ids in hexadecimal digits, 64-bit numbers as text. */
export interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  traceState: string;
  name: string;
  kind: number;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  status: { code: number; message: string };
  attributes: KeyValue[];
  events: { name: string; timeUnixNano: string; attributes: KeyValue[] }[];
}

interface SentRequest {
  resourceSpans: {
    resource: { attributes: KeyValue[] };
    scopeSpans: { scope: { name: string }; spans: SentSpan[] }[];
  }[];
}

/** Proto3 does not send what is zero. */
const noStatus: Partial<SentSpan["status"]> = { code: 0 };

/** The body of a request to a collector. */
export function decodeRequest(body: Uint8Array): SentRequest {
  const message = requestType.toObject(requestType.decode(body), {
    longs: String,
    arrays: true,
  }) as SentRequest;
  const hex = (id: string | Uint8Array | undefined) => Buffer.from(id ?? "").toString("hex");
  for (const { scopeSpans } of message.resourceSpans)
    for (const { spans } of scopeSpans)
      for (const span of spans)
        Object.assign(span, {
          traceId: hex(span.traceId),
          spanId: hex(span.spanId),
          parentSpanId: hex(span.parentSpanId),
          status: { ...noStatus, ...span.status },
        });
  return message;
}

/** An OTLP collector that remembers. */
export async function startCollector() {
  const spans: SentSpan[] = [];
  const services: unknown[] = [];
  const server = createServer((request, response) => {
    // What exports traces is part of none.
    expect(request.headers).not.toHaveProperty("traceparent");
    expect(request.headers["content-type"]).toBe("application/x-protobuf");
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      for (const { resource, scopeSpans } of decodeRequest(Buffer.concat(chunks)).resourceSpans) {
        services.push(resource.attributes);
        for (const each of scopeSpans) spans.push(...each.spans);
      }
      response.end();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;
  return { endpoint: `http://127.0.0.1:${port}/v1/traces`, spans, services };
}
