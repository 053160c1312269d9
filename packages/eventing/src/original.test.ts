/** What the original's own delivery tests publish and subscribe to, in its three formats, and what their sink has to get. */
import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { serve, World } from "./testing/world.ts";

interface Got {
  id: string;
  source: string;
  type: string;
  original: string;
  data: unknown;
}

const sources: [name: string, source: string, types: string[]][] = [
  ["plain", "noapp", ["order.modified.v1"]],
  ["signs", "test-app", ["Order-$.third.R-e-c-e-i-v-e-d.v1"]],
  ["several", "test-evnt", ["or-der.crea-ted.one.two.three.four.v4", "order.testing.v1"]],
  ["prohibited", "myapp", ["order.payment*success.v1"]],
];

const rows = sources.flatMap(([name, source, types]) =>
  types.flatMap((type) =>
    (["legacy", "structured", "binary"] as const).map((format) => ({ name, source, type, format })),
  ),
);

test("events reach Subscriptions by their types as they are written, in each format", async () => {
  const world = await World.create();
  const got: Got[] = [];
  const port = await serve((request, response) => {
    const attribute = (name: string) => String(request.headers[`ce-${name}`]);
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      const [id, source, type] = [attribute("id"), attribute("source"), attribute("type")];
      const original = attribute("originaltype");
      got.push({ id, source, type, original, data: JSON.parse(body) });
      response.end();
    });
  });
  for (const [name, source, types] of sources) await world.subscribe(name, port, { source, types });

  const expected: Got[] = [];
  for (const { source, type, format } of rows) {
    const id = randomUUID();
    const data = { app: source, mode: format, type };
    const context = { specversion: "1.0", id, source, type };
    const headers = Object.entries(context).map(([name, value]) => [`ce-${name}`, value]);
    const [, event, version] = /^(.*)\.(\w+)$/.exec(type) ?? [];
    const request = {
      structured: {
        headers: { "content-type": "application/cloudevents+json" },
        body: JSON.stringify({ ...context, datacontenttype: "application/json", data }),
      },
      binary: {
        headers: { ...Object.fromEntries(headers), "content-type": "application/json" },
        body: JSON.stringify(data),
      },
      legacy: {
        path: `/${source}/v1/events`,
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          "event-type": event,
          "event-type-version": version,
          "event-time": "2020-04-02T21:37:00Z",
          "event-id": id,
          data,
        }),
      },
    }[format];
    const { status } = await world.send(request);
    expect([type, format, status]).toEqual([type, format, format === "legacy" ? 200 : 204]);
    expected.push({ id, source, type, original: type, data });
  }
  await world.until(() => got.length >= expected.length);
  const byId = (a: Got, b: Got) => (a.id < b.id ? -1 : 1);
  expect(got.sort(byId)).toEqual(expected.sort(byId));
});
