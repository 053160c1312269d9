/** What the conformance features of CloudEvents ask of the HTTP binding and of the JSON format, through the publisher, as a sink gets it. */
import { expect, test } from "vitest";
import { serve, World } from "../testing/world.ts";

const structured = { "content-type": "application/cloudevents+json" };
const batched = { "content-type": "application/cloudevents-batch+json" };
const minimal = {
  specversion: "1.0",
  id: "minimal",
  type: "sink.test.v1",
  source: "https://events.example/source",
};

interface Got {
  headers: Record<string, unknown>;
  body: string;
}

/** A sink, and what it gets of the events of one request. */
async function sinkOf() {
  const world = await World.create();
  const got: Got[] = [];
  const port = await serve((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      got.push({ headers: request.headers, body });
      response.end();
    });
  });
  await world.subscribe("sink", port, { source: "", types: [minimal.type], typeMatching: "exact" });
  return async (headers: Record<string, string>, body: string, count = 1): Promise<Got[]> => {
    const before = got.length;
    expect(await world.send({ headers, body })).toEqual({ status: 204, body: "" });
    await world.until(() => got.length >= before + count);
    return got.slice(before);
  };
}

let lastId = 0;
/** Each row is an event of its own, not a duplicate of an earlier one. */
const fresh = <T extends object>(event: T) => ({ ...event, id: `id-${++lastId}` });

const headersOf = (event: object) =>
  Object.fromEntries(Object.entries(event).map(([name, value]) => [`ce-${name}`, String(value)]));

test("the HTTP binding, in both modes", async () => {
  const delivered = await sinkOf();
  const context = { ...minimal, time: "2018-04-05T03:56:24Z" };
  const data = `{\n    "message": "Hello World!"\n}`;
  for (const type of ["application/json", "application/json; charset=utf-8"]) {
    const headers = { ...headersOf(fresh(context)), "content-type": type };
    const [sent] = await delivered(headers, data);
    expect(sent).toMatchObject({ headers, body: data });
  }
  for (const type of [
    "application/cloudevents+json",
    "application/cloudevents+json; charset=utf-8",
  ]) {
    const event = fresh(context);
    const datacontenttype = "application/json";
    const body = JSON.stringify({ ...event, datacontenttype, data: JSON.parse(data) as unknown });
    const [sent] = await delivered({ "content-type": type }, body);
    const headers = { ...headersOf(event), "content-type": datacontenttype };
    expect(sent?.headers).toMatchObject(headers);
    expect(JSON.parse(sent?.body ?? "")).toEqual({ message: "Hello World!" });
  }
});

test("the JSON format, what is an event", async () => {
  const delivered = await sinkOf();
  const time = "2018-04-05T17:31:00Z";
  const allOptional = { subject: "tests", dataschema: "https://events.example/schema", time };
  const extensions = {
    extinteger: 10,
    extboolean: true,
    extstring: "text",
    exturi: "https:",
    exturiref: "//authority/path",
    exttimestamp: "2023-03-31T15:12:00Z",
    extbinary: "TWE",
  };
  const missing = { "ce-subject": undefined, "ce-time": undefined, "content-type": undefined };
  const rows: [change: object, headers: Record<string, string | undefined>][] = [
    [{}, missing],
    [{ datacontenttype: null, dataschema: null, subject: null, time: null }, missing],
    [
      { ...allOptional, datacontenttype: "text/plain" },
      { ...headersOf(allOptional), "content-type": "text/plain" },
    ],
    [{ source: "#fragment" }, { "ce-source": "#fragment" }],
    [extensions, headersOf(extensions)],
    ...["18:31:00Z", "18:31:00.000000000Z", "18:31:00+01:00", "18:31:00-01:00"].map(
      (at): [object, Record<string, string>] => [
        { time: `2018-04-05T${at}` },
        { "ce-time": `2018-04-05T${at}` },
      ],
    ),
  ];
  for (const [change, headers] of rows) {
    const [sent] = await delivered(structured, JSON.stringify(fresh({ ...minimal, ...change })));
    for (const [name, value] of Object.entries(headers))
      expect([name, sent?.headers[name]]).toEqual([name, value]);
  }
  const text = fresh({ ...minimal, datacontenttype: "text/plain", data: "Simple text" });
  expect((await delivered(structured, JSON.stringify(text)))[0]?.body).toBe("Simple text");
  for (const count of [0, 1, 2]) {
    const events = Array.from({ length: count }, () => fresh(minimal));
    const all = await delivered(batched, JSON.stringify(events), count);
    const ids = all.map(({ headers }) => headers["ce-id"]);
    expect(new Set(ids)).toEqual(new Set(events.map(({ id }) => id)));
  }
});

test("the JSON format, what is not an event", async () => {
  const world = await World.create();
  const time = (text: string) => ({ ...minimal, time: text });
  const without = (name: keyof typeof minimal) => ({ ...minimal, [name]: undefined });
  const rows: unknown[] = [
    ...(["specversion", "id", "type", "source"] as const).map(without),
    ...["lunchtime", "2018-04-05T18:31Z", "2018-04-05T18:31:00X"].map(time),
    ...["25:00", "xx:00", "05"].map((offset) => time(`2018-04-05T18:31:00+${offset}`)),
    ...["id", "type", "source", "specversion"].map((name) => ({ ...minimal, [name]: "" })),
    { ...minimal, specversion: "0.9" },
    { ...minimal, datacontenttype: "xyz" },
    ...["datacontenttype", "dataschema", "subject"].map((name) => ({ ...minimal, [name]: "" })),
    { ...minimal, id: 25 },
    { ...minimal, id: { a: "b" } },
    { ...minimal, MyExtension: "bad" },
    { ...minimal, "my.extension": "bad" },
    { ...minimal, extension: 1.5 },
    { ...minimal, data: "text", data_base64: "eyAieHl6IjogMTIzIH0=" },
    "not an object",
  ];
  for (const event of rows) {
    const one = await world.send({ headers: structured, body: JSON.stringify(event) });
    expect([event, one.status]).toEqual([event, 400]);
    const body = JSON.stringify([fresh(minimal), event]);
    const several = await world.send({ headers: batched, body });
    expect([event, several.status]).toEqual([event, 400]);
    expect(several.body).toMatch(/^event 1 of the batch: /);
  }
});
