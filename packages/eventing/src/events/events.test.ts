import { stringifyJson } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { isTooDeep, NotAnEventError, tooDeep, toJson } from "./cloud-event.ts";
import { binaryHeaders, eventsOf, maxBodyBytes } from "./http.ts";
import { legacyApplication, legacyEvent } from "./legacy.ts";
import { toMessage } from "./message.ts";
import { fullName } from "./names.ts";

const minimal = { specversion: "1.0", id: "1", source: "/s", type: "t.v1" };
const structured = { "content-type": "application/cloudevents+json; charset=UTF-8" };
const batch = { "content-type": "application/cloudevents-batch+json" };
const bytes = (value: unknown) =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const read = (headers: Record<string, string>, body: unknown) => eventsOf(headers, bytes(body));

describe("an event", () => {
  test("is read in structured mode, with data of each kind", () => {
    const rows: [object, string, string | undefined][] = [
      [{ data: { a: 1 } }, `{"a":1}`, "application/json"],
      [{ data: "text", datacontenttype: "text/plain" }, "text", "text/plain"],
      [{ data: "text" }, `"text"`, "application/json"],
      [{ data_base64: "AP8=", datacontenttype: "image/png" }, "\u0000\ufffd", "image/png"],
      [{ data: null }, "null", "application/json"],
      [{}, "", undefined],
    ];
    for (const [rest, data, type] of rows) {
      const [event] = read(structured, { ...minimal, ...rest });
      expect(Buffer.from(event?.data ?? []).toString()).toBe(data);
      expect(event?.attributes["datacontenttype"]).toBe(type);
    }
  });

  test("is read in binary mode, values percent-decoded", () => {
    const headers = {
      "ce-specversion": "1.0",
      "ce-id": "1",
      "ce-source": "/s",
      "ce-type": "t.v1",
      "ce-subject": "Euro%20%E2%82%AC%20%F0%9F%98%80",
      "content-type": "text/xml",
      "x-other": "no",
    };
    const [event] = eventsOf(headers, Buffer.from("<a/>"));
    expect(event?.attributes).toEqual({
      ...minimal,
      subject: "Euro € 😀",
      datacontenttype: "text/xml",
    });
    expect(binaryHeaders(event ?? { attributes: {}, data: new Uint8Array() })).toContain(
      "Euro%20%E2%82%AC%20%F0%9F%98%80",
    );
  });

  test("keeps integers and booleans of the JSON format, and the trace of its request", () => {
    const trace = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    const headers = { ...structured, traceparent: trace };
    const [event] = read(headers, { ...minimal, count: 5, flag: true, gone: null });
    expect(event?.attributes).toEqual({
      ...minimal,
      count: "5",
      flag: "true",
      traceparent: trace,
    });
    for (const wrong of ["00-ab-cd-01", `${trace}\u009b31m`, `${trace}-${"x".repeat(500)}`]) {
      const [other] = read({ ...structured, traceparent: wrong }, minimal);
      expect(other?.attributes).toEqual(minimal);
    }
  });

  test("may have data of any depth in binary mode; as JSON it is bytes then", () => {
    const binary = {
      "ce-specversion": "1.0",
      "ce-id": "1",
      "ce-source": "/s",
      "ce-type": "t.v1",
      "content-type": "application/json",
    };
    const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
    const shown = (depth: number) => {
      const [event] = eventsOf(binary, Buffer.from(nested(depth)));
      return stringifyJson(toJson(event ?? { attributes: {}, data: new Uint8Array() }));
    };
    expect(shown(500)).toContain(`"data":[[[`);
    expect(shown(8_000)).toContain(`"data_base64":"W1tb`);
    const text = `{"a":"${"[".repeat(600)}\\"[["}`;
    expect(isTooDeep(Buffer.from(text))).toBe(false);
    for (const deep of [501, 100_000])
      expect(() => read(structured, `{"data":${nested(deep)}}`)).toThrow(tooDeep);
    expect(legacyEvent("shop", Buffer.from(nested(100_000)))).toMatchObject({
      status: 400,
      moreInfo: tooDeep,
    });
  });

  test("comes out in the JSON format as it went in", () => {
    for (const rest of [
      { data: [1, { b: "ü" }] },
      { data: "x", datacontenttype: "text/plain" },
      {},
    ]) {
      const [event] = read(structured, { ...minimal, ...rest });
      const shown = stringifyJson(toJson(event ?? { attributes: {}, data: new Uint8Array() }));
      expect(JSON.parse(shown)).toMatchObject({
        ...minimal,
        ...rest,
      });
    }
  });

  test("may be one of a batch", () => {
    const events = read(batch, [minimal, { ...minimal, id: "2" }]);
    expect(events.map(({ attributes }) => attributes["id"])).toEqual(["1", "2"]);
    expect(read(batch, [])).toEqual([]);
  });
});

describe("a request without an event is refused with a sentence", () => {
  const long = "x".repeat(501);
  const rows: [string, Record<string, string>, unknown, string][] = [
    ["no encoding", { "content-type": "application/json" }, minimal, "unknown Message encoding"],
    ["another format", { "content-type": "application/cloudevents+xml" }, "", "send JSON"],
    ["no JSON", structured, "{", "not valid JSON in UTF-8"],
    ["no object", structured, [minimal], "not a JSON object"],
    [
      "an old version",
      structured,
      { ...minimal, specversion: "0.3" },
      'specversion: unknown : "0.3"',
    ],
    ["no id", structured, { ...minimal, id: "" }, "id: MUST be a non-empty string"],
    ["no source", structured, { ...minimal, source: undefined }, "source: REQUIRED"],
    [
      "a wrong source",
      structured,
      { ...minimal, source: "a b" },
      "source: MUST be a URI-reference",
    ],
    ["no type", structured, { ...minimal, type: " " }, "type: MUST be a non-empty string"],
    ["a wrong time", structured, { ...minimal, time: "yesterday" }, "time: MUST be a timestamp"],
    ["a long type", structured, { ...minimal, type: long }, "type: has more than 500 characters"],
    ["a wrong name", structured, { ...minimal, "Not-OK": "1" }, "Not-OK: attribute names are"],
    ["__proto__", structured, `{"__proto__":{"a":1},"id":"1"}`, "attributes are strings"],
    ["a nested attribute", structured, { ...minimal, a: {} }, "a: attributes are strings"],
    ["a line break", structured, { ...minimal, subject: "a\r\nb" }, "control characters"],
    ["wrong base64", structured, { ...minimal, data_base64: "*" }, "not valid base64"],
    ["both data", structured, { ...minimal, data: 1, data_base64: "AA==" }, "must not both be set"],
    ["no array", batch, minimal, "a batch is a JSON array"],
    ["one of a batch", batch, [minimal, {}], "event 1 of the batch: specversion"],
    [
      "many attributes",
      structured,
      { ...minimal, ...Object.fromEntries(Array.from({ length: 80 }, (_, n) => [`a${n}`, "1"])) },
      "attributes: more than 64",
    ],
  ];
  test.each(rows)("%s", (_name, headers, body, message) => {
    expect(() => read(headers, body)).toThrow(NotAnEventError);
    expect(() => read(headers, body)).toThrow(message);
  });

  test("a large event, and a large batch", () => {
    const large = { ...minimal, data: "x".repeat(1024 ** 2 + 1) };
    expect(() => read(structured, large)).toThrow("more than 1048576 bytes");
    expect(() =>
      read(
        batch,
        Array.from({ length: 1_001 }, () => minimal),
      ),
    ).toThrow("at most 1000");
    expect(maxBodyBytes(batch)).toBe(8 * 1024 ** 2);
  });
});

describe("a legacy event", () => {
  const body = {
    "event-type": "order.created",
    "event-type-version": "v1",
    "event-time": "2026-01-31T12:00:00Z",
    "event-id": "a9b1c2d3-0000-4000-8000-000000000001",
    data: { n: 1 },
  };

  test("is an event of its application", () => {
    expect(legacyApplication("/commerce/v1/events")).toBe("commerce");
    expect(legacyApplication("/publish")).toBeUndefined();
    expect(legacyEvent("commerce", bytes(body))).toMatchObject({
      attributes: {
        source: "commerce",
        type: "order.created.v1",
        id: body["event-id"],
        eventtypeversion: "v1",
      },
    });
  });

  test.each([
    [{ "event-type": "" }, "missing_field", "event-type"],
    [{ "event-type-version": "" }, "missing_field", "event-type-version"],
    [{ "event-type-version": "v 1" }, "invalid_field", "event-type-version"],
    [{ "event-time": "" }, "missing_field", "event-time"],
    [{ "event-time": "now" }, "invalid_field", "event-time"],
    [{ "event-id": "7" }, "invalid_field", "event-id"],
    [{ data: "" }, "missing_field", "data"],
  ])("with %j is refused in the original's form", (change, type, field) => {
    expect(legacyEvent("commerce", bytes({ ...body, ...change }))).toMatchObject({
      status: 400,
      type: "validation_violation",
      details: [{ field, type }],
    });
  });

  test("that is not JSON is a bad payload", () => {
    expect(legacyEvent("commerce", bytes("{"))).toMatchObject({
      status: 400,
      type: "bad_payload",
      message: "Bad payload syntax",
    });
  });
});

test("names of events are cleaned as the original does it", () => {
  expect(fullName("shop", "order.created.v1")).toBe("sap.kyma.custom.shop.order.created.v1");
  expect(fullName("my.shop/eu *>", "order created>.*v1")).toBe(
    "sap.kyma.custom.myshopeu.ordercreated.v1",
  );
  expect(fullName("any", "sap.kyma.custom.shop.a.v1")).toBe("sap.kyma.custom.shop.a.v1");
});

test("an event is another one's duplicate only with the same content, whatever its trace", () => {
  const key = (change: object, data = "1") =>
    toMessage({ attributes: { ...minimal, ...change }, data: Buffer.from(data) }).key;
  const own = key({});
  expect(key({ traceparent: "x", tracestate: "y" })).toBe(own);
  const others = [key({ id: "2" }), key({ type: "t.v2" }), key({ subject: "s" }), key({}, "2")];
  expect(new Set([own, ...others]).size).toBe(5);
  const long = "x".repeat(500);
  expect(key({ id: long, source: long }).length).toBeLessThanOrEqual(1_024);
});
