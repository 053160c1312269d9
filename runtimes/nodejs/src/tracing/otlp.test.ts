/** What a collector reads of what is written for it; field numbers are those of opentelemetry-proto. */
import { describe, expect, test } from "vitest";
import { decodeRequest } from "../testing/collector.ts";
import { blankSpan, requestHead, spanField } from "./otlp.ts";
import { Span } from "./span.ts";
import { SpanBatch } from "./span-batch.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";
const parentSpanId = "00f067aa0ba902b7";
const startMs = 1_795_348_800_123.456;

function sent(span: Span) {
  const field = Buffer.from(spanField(span));
  const request = decodeRequest(Buffer.concat([requestHead("hello", field.length), field]));
  const [{ resource, scopeSpans }] = request.resourceSpans as [(typeof request.resourceSpans)[0]];
  expect(resource.attributes).toEqual([{ key: "service.name", value: { stringValue: "hello" } }]);
  return scopeSpans[0]?.spans[0];
}

function spanWith(attributes: Record<string, unknown>, name = "work"): Span {
  const context = { traceId, spanId, traceFlags: 1, tracestate: "a=1" };
  const span = new Span(name, context, {
    kind: 3,
    parentSpanId,
    startTime: startMs,
    attributes,
    onEnd: () => {},
  });
  span.addEvent("begun", { n: 1 }, startMs + 1);
  span.setStatus({ code: 2, message: "no" });
  span.end(startMs + 2.5);
  return span;
}

test("a span is whole", () => {
  expect(sent(spanWith({}))).toEqual({
    traceId,
    spanId,
    parentSpanId,
    traceState: "a=1",
    name: "work",
    kind: 3,
    startTimeUnixNano: "1795348800123456000",
    endTimeUnixNano: "1795348800125956000",
    attributes: [],
    events: [
      {
        timeUnixNano: "1795348800124456000",
        name: "begun",
        attributes: [{ key: "n", value: { intValue: "1" } }],
      },
    ],
    status: { code: 2, message: "no" },
  });
});

const cyclic: unknown[] = [];
cyclic.push(cyclic);
test.each<[string, unknown, Record<string, unknown>]>([
  ["a text", "ö", { stringValue: "ö" }],
  ["true", true, { boolValue: true }],
  ["false", false, { boolValue: false }],
  ["zero", 0, { intValue: "0" }],
  ["an integer", 2 ** 53 - 1, { intValue: "9007199254740991" }],
  ["a negative integer", -(2 ** 53 - 1), { intValue: "-9007199254740991" }],
  ["minus one", -1, { intValue: "-1" }],
  ["a fraction", -0.1, { doubleValue: -0.1 }],
  ["what is too large for an integer", 2 ** 60, { doubleValue: 2 ** 60 }],
  ["infinity", Infinity, { doubleValue: Infinity }],
  ["nothing", undefined, { stringValue: "undefined" }],
  ["an empty list", [], { arrayValue: { values: [] } }],
  ["a list", ["a", 1], { arrayValue: { values: [{ stringValue: "a" }, { intValue: "1" }] } }],
  ["a list of itself", cyclic, { arrayValue: { values: [{ stringValue: "" }] } }],
  ["what has no text", Object.create(null), { stringValue: "(it has no text)" }],
])("%s as an attribute", (_name, value, expected) => {
  expect(sent(spanWith({ value }))?.attributes).toEqual([{ key: "value", value: expected }]);
});

// Lengths of one, two, three and four bytes, and what a name of 1,290 makes of them: its second byte is a field's number.
describe.each([1, 100, 127, 128, 1290, 16_383, 16_384, 300_000])("with %i characters", (count) => {
  const text = "x".repeat(count);

  test("a span is whole", () => {
    const span = sent(spanWith({ text, more: [text] }, text));
    expect(span).toMatchObject({ traceId, spanId, name: text, kind: 3 });
    expect(span?.attributes).toEqual([
      { key: "text", value: { stringValue: text } },
      { key: "more", value: { arrayValue: { values: [{ stringValue: text }] } } },
    ]);
  });

  test.each([true, false])("one that is filled in is whole, with a parent: %s", (hasParent) => {
    const description = {
      name: text,
      kind: 2,
      attributes: { text, id: ["-".repeat(36)] },
      events: [],
      status: { code: 0 },
    };
    const template = blankSpan(description, hasParent, "-".repeat(36));
    const requestId = "00000000-0000-0000-0000-000000000001";
    const batch = new SpanBatch(700_000, "hello");
    const ids = Buffer.from(`ff${traceId}${spanId}`, "hex");
    const parent = hasParent ? { traceId, spanId: parentSpanId, traceFlags: 1 } : undefined;
    batch.addPlain({ template, ids, at: 1, parent, requestId, startMs, endMs: startMs + 1 });
    const { resourceSpans } = decodeRequest(Buffer.concat(batch.close()));
    expect(resourceSpans[0]?.scopeSpans[0]?.spans).toEqual([
      {
        traceId,
        spanId,
        parentSpanId: hasParent ? parentSpanId : "",
        name: text,
        kind: 2,
        startTimeUnixNano: "1795348800123456000",
        endTimeUnixNano: "1795348800124456000",
        attributes: [
          { key: "text", value: { stringValue: text } },
          { key: "id", value: { arrayValue: { values: [{ stringValue: requestId }] } } },
        ],
        events: [],
        status: { code: 0 },
      },
    ]);
  });
});

test("a batch takes no more than it has room for", () => {
  const batch = new SpanBatch(1000, "hello");
  let taken = 0;
  while (batch.add(spanWith({ taken }))) taken++;
  expect(batch.add(spanWith({}, "x".repeat(1000)))).toBe(false);
  const { resourceSpans } = decodeRequest(Buffer.concat(batch.close()));
  expect(resourceSpans[0]?.scopeSpans[0]?.spans).toHaveLength(taken);
  expect(taken).toBeGreaterThan(2);
});
