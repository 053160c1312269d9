/** What is published arrives as it was, byte for byte, over every way that an event can take. */
import * as fc from "fast-check";
import { elementsOf, memberText, stringifyJson } from "@spry/kube";
import { expect, test } from "vitest";
import { type CloudEvent, toJson } from "./events/cloud-event.ts";
import { eventsOf } from "./events/http.ts";
import { legacyEvent } from "./events/legacy.ts";
import { serve, World } from "./testing/world.ts";

const context = '"specversion":"1.0","source":"shop","type":"sink.v1"';
const structured = { "content-type": "application/cloudevents+json" };
const batch = { "content-type": "application/cloudevents-batch+json" };
const binary = {
  "ce-specversion": "1.0",
  "ce-id": "1",
  "ce-source": "shop",
  "ce-type": "sink.v1",
  "content-type": "application/json",
};
const legacyHead =
  '"event-type":"sink","event-type-version":"v1","event-time":"2026-01-31T12:00:00Z"';

/** JSON that JavaScript would write in another way. */
const exact = [
  '{"n":12345678901234567890,"f":1.10,"e":1e400,"z":-0,"o":{"b":1,"1":3}}',
  '{"a":1,"a":2}',
  '{ "spaced" : [ 1 , 2 ] ,\t"line":\r\n null }',
  String.raw`{"escaped":"\u0041\/\ud83d\ude00","half":"\ud800","nul":"\u0000"}`,
  "12345678901234567890",
  '"text"',
  "[]",
  '{"__proto__":{"x":1},"constructor":1}',
  `{"emoji":"😀","line":"\u2028"}`,
];
const number = fc.stringMatching(/^-?(?:0|[1-9]\d{0,24})(?:\.\d{1,6})?(?:[eE][+-]?\d{1,3})?$/);
const pad = fc.constantFrom("", " ", "\n", "\t");
const json: fc.Arbitrary<string> = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    number,
    fc.string({ unit: "grapheme" }).map((text) => JSON.stringify(text)),
    fc.constantFrom("true", "false", "null"),
    fc
      .array(fc.tuple(pad, tie("value"), pad), { minLength: 1, maxLength: 4 })
      .map((all) => `[${all.map((each) => each.join("")).join(",")}]`),
    fc
      .array(fc.tuple(fc.constantFrom("1", "b", "a", "0"), pad, tie("value")), { maxLength: 4 })
      .map((all) => `{${all.map(([key, space, value]) => `"${key}"${space}:${value}`).join(",")}}`),
  ),
})).value;

const text = (event: CloudEvent | undefined) => Buffer.from(event?.data ?? []).toString();
const shown = (event: CloudEvent | undefined) => event && stringifyJson(toJson(event));

/** Each way in, and what comes out of it. */
const ways: Record<string, (data: string) => string | undefined> = {
  structured: (data) =>
    text(eventsOf(structured, Buffer.from(`{${context},"id":"1","data":${data}}`))[0]),
  "structured, with a byte order mark": (data) =>
    text(eventsOf(structured, Buffer.from(`\uFEFF{"data":${data}, ${context},"id":"1"}`))[0]),
  "a batch": (data) => {
    const event = `{${context},"id":"1","data": ${data} }`;
    const events = eventsOf(batch, Buffer.from(`[ {${context},"id":"0"} , ${event},${event}]`));
    expect(text(events[1])).toBe(text(events[2]));
    return text(events[1]);
  },
  binary: (data) => text(eventsOf(binary, Buffer.from(data))[0]),
  "what administrators are shown": (data) =>
    memberText(shown(eventsOf(binary, Buffer.from(data))[0]) ?? "", "data"),
};

test.each(Object.entries(ways))("data of JSON keeps its bytes: %s", (_, way) => {
  for (const data of exact) expect(way(data)).toBe(data);
  fc.assert(
    fc.property(json, (data) => {
      expect(way(data)).toBe(data);
    }),
    { seed: 11 },
  );
});

test("data of JSON keeps its bytes: legacy", () => {
  const way = (data: string) => legacyEvent("shop", Buffer.from(`{${legacyHead},"data":${data}}`));
  for (const data of exact) expect(text(way(data) as CloudEvent)).toBe(data);
});

test.each<[string, string]>([
  ["a text", `"subject":"12345678901234567890"`],
  ["an integer", `"count":12345678901234567890`],
  ["a negative integer", `"count":-7`],
  ["a boolean", `"flag":true`],
])("an attribute is kept as it is written: %s", (_, member) => {
  const [event] = eventsOf(structured, Buffer.from(`{${context},"id":"1",${member}}`));
  const [name, value] = member.replaceAll('"', "").split(":");
  expect(event?.attributes[name ?? ""]).toBe(value);
});

test.each<[string, string, RegExp]>([
  ["a fraction", `"x":1.0`, /x: attributes are strings, integers or booleans/],
  ["an exponent", `"x":1e3`, /x: attributes are/],
  ["an object", `"x":{}`, /x: attributes are/],
  ["a member that occurs twice", `"x":"1","x":"2"`, /x: the member occurs twice/],
  ["data that occurs twice", `"data":1,"data":2`, /data: the member occurs twice/],
  [
    "half a character in an attribute",
    String.raw`"x":"\ud800"`,
    /x: contains a half of a surrogate/,
  ],
  [
    "half a character in a text",
    String.raw`"datacontenttype":"text/plain","data":"\udc00"`,
    /data: contains a half of a surrogate/,
  ],
  [
    "a content type that no header can carry",
    `"datacontenttype":"text/plain; title=ü","data":""`,
    /datacontenttype: contains characters outside of ASCII/,
  ],
  ["base64 with a rest", `"data_base64":"AP8=A"`, /data_base64: not valid base64/],
  ["base64 of a single character", `"data_base64":"A"`, /data_base64: not valid/],
  ["base64 that is not a text", `"data_base64":1`, /data_base64: not valid/],
])("what cannot be kept is refused by its name: %s", (_, member, message) => {
  expect(() => eventsOf(structured, Buffer.from(`{${context},"id":"1",${member}}`))).toThrow(
    message,
  );
});

test("base64 without its padding is the same bytes", () => {
  for (const [written, bytes] of [
    ["AP8=", [0, 255]],
    ["AP8", [0, 255]],
    ["", []],
  ] as const) {
    const body = `{${context},"id":"1","data_base64":"${written}"}`;
    expect([...(eventsOf(structured, Buffer.from(body))[0]?.data ?? [])]).toEqual(bytes);
  }
});

test("UTF-8 in a header is read as it is meant, and other bytes are refused", () => {
  const raw = (value: Buffer) => ({ ...binary, "ce-subject": value.toString("latin1") });
  const [event] = eventsOf(raw(Buffer.from("Zürich 🚲")), Buffer.from("1"));
  expect(event?.attributes["subject"]).toBe("Zürich 🚲");
  expect(() => eventsOf(raw(Buffer.from([0x5a, 0xfc])), Buffer.from("1"))).toThrow(
    /neither percent-encoded nor valid UTF-8/,
  );
});

test("a sink receives these bytes, and again from its dead letters and by replay", async () => {
  const world = await World.create();
  let isUp = false;
  const got: string[] = [];
  const port = await serve((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (isUp) got.push(Buffer.concat(chunks).toString());
      response.writeHead(isUp ? 200 : 400).end();
    });
  });
  await world.subscribe("sink", port, { delivery: { maxAttempts: 1 } });
  const bodies = exact.map((data, n) => `{${context},"id":"${n}","data":${data}}`);
  await world.send({ headers: batch, body: `[${bodies.join(",")}]` });
  await world.until(async () => (await world.deadOf("sink")).length === exact.length);
  isUp = true;
  const consumer = await world.eventing.queue()?.find("subscription/default/sink");
  await consumer?.redrive("all");
  await world.until(() => got.length === exact.length);
  expect(got.toSorted()).toEqual(exact.toSorted());
  await consumer?.replay({ position: 0 });
  await world.until(() => got.length === 2 * exact.length);
  expect(got.slice(exact.length).toSorted()).toEqual(exact.toSorted());
});

test("a page of events is one JSON text in which data stands as it was published", () => {
  const events = exact.map((data) => eventsOf(binary, Buffer.from(data))[0]!);
  const page = stringifyJson({ items: events.map((event) => ({ event: toJson(event) })) });
  JSON.parse(page);
  const items = memberText(page, "items") ?? "";
  const found = elementsOf(items).map(({ start, end }) =>
    memberText(memberText(items.slice(start, end), "event") ?? "", "data"),
  );
  expect(found).toEqual(exact);
});
