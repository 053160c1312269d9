import { describe, expect, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";
import { echo } from "./testing/echo.ts";

describe("a CloudEvent", () => {
  const attributes = {
    specversion: "1.0",
    id: "1",
    source: "/here",
    type: "order.created",
    subject: "s",
    eventtypeversion: "v1",
  };
  const prefixed = Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value]),
  );

  test("in binary mode has its attributes from headers", async () => {
    const { url } = await startFunction(echo);
    const headers = { ...prefixed, "ce-subject": "%C3%BC", "content-type": "application/json" };
    const { body } = await send(url, { method: "POST", headers, body: '{"a":1}' });
    expect(JSON.parse(body)).toEqual({
      data: { a: 1 },
      ...prefixed,
      "ce-subject": "ü",
      "ce-datacontenttype": "application/json",
    });
  });

  test("in structured mode is taken apart", async () => {
    const { url } = await startFunction(echo);
    const post = async (event: object) => {
      const headers = { "content-type": "application/cloudevents+json; charset=utf-8" };
      return JSON.parse(
        (await send(url, { method: "POST", headers, body: JSON.stringify(event) })).body,
      ) as unknown;
    };
    expect(await post({ ...attributes, data: { a: 1 } })).toEqual({ data: { a: 1 }, ...prefixed });
    expect(await post({ ...attributes, data_base64: "AP8=" })).toEqual({
      data: { bytes: "00ff" },
      ...prefixed,
    });
  });

  const malformed: { name: string; headers: Record<string, string>; body: string }[] = [
    { name: "binary without an id", headers: { ...prefixed, "ce-id": "" }, body: "" },
    { name: "of an unknown version", headers: { ...prefixed, "ce-specversion": "7" }, body: "" },
    ...["id", "type", "source"].map((name) => {
      const headers: Record<string, string> = { ...prefixed };
      delete headers[`ce-${name}`];
      return { name: `binary, and there is no ${name}`, headers, body: "" };
    }),
    ...[
      { id: null },
      { type: 5 },
      { source: "" },
      { specversion: null },
      { specversion: 1 },
      { data_base64: "not base64!" },
      { data_base64: 5 },
    ].map((wrong) => ({
      name: `structured, with ${JSON.stringify(wrong)}`,
      headers: { "content-type": "application/cloudevents+json" },
      body: JSON.stringify({ ...attributes, ...wrong }),
    })),
    {
      name: "a batch that is no list",
      headers: { "content-type": "application/cloudevents-batch+json" },
      body: "{}",
    },
    {
      name: "a batch with one that is none",
      headers: { "content-type": "application/cloudevents-batch+json" },
      body: JSON.stringify([attributes, { id: "2" }]),
    },
  ];
  test("that is malformed is refused in any mode", async () => {
    const { url } = await startFunction(echo);
    for (const { name, headers, body } of malformed) {
      const { status } = await send(url, { method: "POST", headers, body });
      expect({ name, status }).toEqual({ name, status: 400 });
    }
  });

  test("batch is a list of events", async () => {
    const { url } = await startFunction(echo);
    const headers = { "content-type": "application/cloudevents-batch+json" };
    const { body } = await send(url, {
      method: "POST",
      headers,
      body: JSON.stringify([attributes]),
    });
    expect(JSON.parse(body)).toEqual({ data: [attributes] });
  });

  test("is published structured, and what comes back is the result", async () => {
    const target = await startFunction(`module.exports.main = (event) => {
      if (event["ce-type"] === "refuse") { event.setResponseStatus(503); return "no"; }
      return { type: event["ce-type"], source: event["ce-source"], id: event["ce-id"], data: event.data,
        contentType: event["ce-datacontenttype"], extra: event["ce-extra"] };
    };`);
    const { url } = await startFunction(
      `module.exports.main = async (event) => {
        const sent = await event.emitCloudEvent("made", "me", { n: 1 }, { extra: "x", id: "7" });
        const text = await event.emitCloudEvent("made", "me", "words");
        const built = event.buildResponseCloudEvent("9", "answer", { a: 1 });
        const published = await event.publishCloudEvent(built);
        const refused = await event.emitCloudEvent("refuse", "me", {}).catch((error) => error.response.status);
        return { sent: sent.data, contentType: text.data.contentType, published: published.data, refused };
      };`,
      { PUBLISHER_PROXY_ADDRESS: `${target.url}/publish` },
    );
    const answer = await send(url, { headers: prefixed });
    expect(JSON.parse(answer.body)).toEqual({
      sent: {
        type: "made",
        source: "me",
        id: "7",
        data: { n: 1 },
        contentType: "application/json",
        extra: "x",
      },
      contentType: "text/plain",
      published: {
        type: "answer",
        source: "/here",
        id: "9",
        data: { a: 1 },
        contentType: "application/json",
      },
      refused: 503,
    });
  });
});
