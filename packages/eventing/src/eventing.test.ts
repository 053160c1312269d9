/** Publisher and dispatcher over HTTP, on a real API server, with sinks that behave as sinks do. */
import { mkdtempSync } from "node:fs";
import { type RequestListener } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { subscriptions } from "@spry/function";
import { ManualClock, resources } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { serve, World } from "./testing/world.ts";

describe("the publisher", () => {
  test("refuses what it cannot keep, each with a status of its own", async () => {
    const world = await World.create();
    const structured = { "content-type": "application/cloudevents+json" };
    const rows: [Parameters<World["send"]>[0], number][] = [
      [{ path: "/other" }, 404],
      [{ method: "GET" }, 405],
      [{ headers: { ...structured, origin: "https://evil.example" }, body: "{}" }, 403],
      [{ headers: structured, body: "{}" }, 400],
      [{ body: "{}" }, 400],
      [{ headers: { ...structured, "content-length": "99999999" } }, 413],
      [{ path: "/app/v1/events", body: "{}" }, 400],
    ];
    for (const [request, status] of rows) {
      const answer = await world.send(request).catch(() => ({ status: 0 }));
      expect({ request, status: answer.status }).toEqual({ request, status });
    }
    expect((await world.publish("a.v1", "1")).status).toBe(204);
    const empty = await world.publish("a..v1", "1");
    expect(empty.body).toContain("event type cannot have empty segments after cleaning");
  });

  test("answers 507 when no more can be kept", async () => {
    const world = await World.create({ maxBytes: 512 * 1024 });
    const statuses = new Set<number>();
    for (let n = 0; n < 30; n++)
      statuses.add((await world.publish("a.v1", String(n), { data: "x".repeat(60_000) })).status);
    expect(statuses).toEqual(new Set([204, 507]));
  });

  test("takes the legacy format, whose source is the application", async () => {
    const world = await World.create();
    const got: string[] = [];
    const port = await serve((request, response) => {
      got.push(`${String(request.headers["ce-source"])} ${String(request.headers["ce-type"])}`);
      response.end();
    });
    await world.subscribe("orders", port, { source: "commerce", types: ["order.created.v1"] });
    const body = JSON.stringify({
      "event-type": "order.created",
      "event-type-version": "v1",
      "event-time": "2026-01-31T12:00:00Z",
      "event-id": "a9b1c2d3-0000-4000-8000-000000000001",
      data: { n: 1 },
    });
    expect(await world.send({ path: "/commerce/v1/events", body })).toEqual({
      status: 200,
      body: `{"event-id":"a9b1c2d3-0000-4000-8000-000000000001"}\n`,
    });
    await world.until(() => got.length > 0);
    expect(got).toEqual(["commerce order.created.v1"]);
  });
});

describe("a sink", () => {
  const once = { delivery: { maxAttempts: 1, timeoutSeconds: 1 } };

  test.each<[string, RequestListener, RegExp]>([
    [
      "that redirects",
      (_request, response) =>
        response.writeHead(302, { location: "http://169.254.169.254/" }).end(),
      /HTTP 302: redirects are not followed/,
    ],
    ["that does not answer", () => {}, /Timeout: no complete response within 1 s/],
    [
      "that fails with a long text",
      (_request, response) =>
        response.writeHead(500, { "content-type": "text/plain" }).end("x".repeat(1e6)),
      /HTTP 500: x{500}$/,
    ],
    ["that breaks off", (request) => request.socket.destroy(), /UpstreamFailed/],
  ])("%s gets a dead letter that says so", async (_name, listener, message) => {
    const world = await World.create();
    await world.subscribe("sink", await serve(listener), once);
    await world.publish("sink.v1", "1");
    await world.until(async () => (await world.deadOf("sink")).length === 1);
    expect((await world.deadOf("sink"))[0]?.message).toMatch(message);
  });

  test("whose response has no end has acknowledged the event with its head", async () => {
    const world = await World.create();
    const port = await serve((_request, response) => {
      response.writeHead(200);
      const write = () => {
        if (response.destroyed) return;
        response.write("x".repeat(1_000));
        setImmediate(write);
      };
      write();
    });
    await world.subscribe("sink", port, once);
    await world.publish("sink.v1", "1");
    const consumer = await world.eventing.queue()?.find("subscription/default/sink");
    await world.until(async () => (await consumer?.state())?.waiting === 0);
    expect(await world.deadOf("sink")).toEqual([]);
  });

  test("at a reserved address is never called", async () => {
    const world = await World.create();
    const delivery = { deadlineSeconds: 1 };
    await world.subscribe("sink", 80, { delivery }, "240.0.0.1");
    await world.publish("sink.v1", "1");
    await world.until(async () => (await world.deadOf("sink")).length === 1);
    const [letter] = await world.deadOf("sink");
    expect(letter).toMatchObject({ reason: "NeverReached", attempts: 0 });
    expect(letter?.message).toContain("has no Pod that is ready");
  });

  test("that is slow gets as much as it has asked for at a time, and holds up no other", async () => {
    const world = await World.create();
    let open = 0;
    const slow = await serve(() => void open++);
    const got: string[] = [];
    const fast = await serve((request, response) => {
      got.push(String(request.headers["ce-id"]));
      response.end();
    });
    await world.subscribe("slow", slow, {
      types: ["both.v1"],
      config: { maxInFlightMessages: "3" },
    });
    await world.subscribe("fast", fast, { types: ["both.v1"] });
    const ids = Array.from({ length: 50 }, (_, n) => String(n));
    for (const id of ids) await world.publish("both.v1", id);
    await world.until(() => got.length === ids.length);
    expect(new Set(got).size).toBe(ids.length);
    expect(open).toBe(3);
  });

  test("that comes back gets what it has missed", async () => {
    const world = await World.create();
    let isUp = false;
    const got: string[] = [];
    const port = await serve((request, response) => {
      if (!isUp) return void response.writeHead(503).end();
      got.push(String(request.headers["ce-id"]));
      return void response.end();
    });
    await world.subscribe("sink", port, { delivery: { maxBackoffSeconds: 1, jitterPercent: 0 } });
    for (const id of ["1", "2", "3"]) await world.publish("sink.v1", id);
    const consumer = await world.eventing.queue()?.find("subscription/default/sink");
    await world.until(async () => (await consumer?.state())?.retrying === 3);
    isUp = true;
    await world.until(() => got.length === 3);
    expect(got.sort()).toEqual(["1", "2", "3"]);
  });
});

test("what waits in a former queue is delivered, and what is published goes to the present one", async () => {
  const world = await World.create();
  let isUp = false;
  const got: string[] = [];
  const port = await serve((request, response) => {
    if (isUp) got.push(String(request.headers["ce-id"]));
    response.writeHead(isUp ? 200 : 503).end();
  });
  await world.subscribe("sink", port, { delivery: { maxBackoffSeconds: 1 } });
  await world.publish("sink.v1", "waits");
  const present = mkdtempSync(path.join(tmpdir(), "eventing-"));
  const former = world.directory;
  const next = await world.restarted(async () => {}, { directory: present, former });
  const consumer = () => next.eventing.queue()?.find("subscription/default/sink");
  await next.until(async () => (await consumer()) !== undefined);
  await next.publish("sink.v1", "new");
  isUp = true;
  await next.until(() => got.length >= 2);
  expect(got.toSorted()).toEqual(["new", "waits"]);
  expect((await next.eventing.queue()?.read({ after: 0, limit: 10 }))?.length).toBe(1);
});

test("what dead letters remain in a former queue is an Event of the Subscription", async () => {
  const world = await World.create();
  const port = await serve((_request, response) => response.writeHead(500).end());
  await world.subscribe("sink", port, { delivery: { maxAttempts: 1 } });
  for (const id of ["1", "2"]) await world.publish("sink.v1", id);
  await world.until(async () => (await world.deadOf("sink")).length === 2);
  const present = mkdtempSync(path.join(tmpdir(), "eventing-"));
  const former = world.directory;
  const clock = new ManualClock(Date.now());
  const next = await world.restarted(async () => {}, { directory: present, former, clock });
  const reported = async () => {
    await clock.advance(30_000);
    const { items } = await next.client.list(resources.events, { namespace: "default" });
    return items.filter(({ reason }) => reason === "LeftInFormerQueue").map((one) => one.message);
  };
  const message =
    "0 events and 2 dead letters remain in the former NATS servers: events are delivered from there, dead letters stay";
  await next.until(async () => (await reported()).includes(message));
  expect(await next.deadOf("sink")).toEqual([]);
  await clock.advance(60_000);
  expect(await reported()).toEqual([message]);
});

test("exact types are full names, standard ones are of a source; both get events of either mode", async () => {
  const world = await World.create();
  const got: string[] = [];
  const sinkOf = (name: string) =>
    serve((request, response) => {
      const { headers } = request;
      got.push(`${name} ${String(headers["ce-id"])} ${String(headers["ce-eventtypeversion"])}`);
      response.end();
    });
  await world.subscribe("exact", await sinkOf("exact"), {
    typeMatching: "exact",
    source: "",
    types: ["sap.kyma.custom.shop.order.created.v1"],
  });
  await world.subscribe("standard", await sinkOf("standard"), {
    typeMatching: "standard",
    types: ["order.created.v1"],
  });
  await world.publish("order.created.v1", "structured", { eventtypeversion: "v1" });
  const binary = { specversion: "1.0", id: "binary", source: "shop", type: "order.created.v1" };
  const attributes = Object.entries({ ...binary, eventtypeversion: "v1" });
  const headers = Object.fromEntries(attributes.map(([name, value]) => [`ce-${name}`, value]));
  const answer = await world.send({
    headers: { ...headers, "content-type": "application/json" },
    body: `{"hello":"world"}`,
  });
  expect(answer.status).toBe(204);
  await world.publish("order.created.v2", "other");
  await world.until(() => got.length === 4);
  const each = ["exact", "standard"].flatMap((name) =>
    ["binary", "structured"].map((id) => `${name} ${id} v1`),
  );
  expect(got.toSorted()).toEqual(each);
});

test("a Subscription that is made again under the name of another one inherits nothing of it", async () => {
  const world = await World.create();
  const port = await serve((_request, response) => response.writeHead(500).end());
  await world.subscribe("sink", port, { delivery: { maxAttempts: 1 } });
  await world.publish("sink.v1", "1");
  await world.until(async () => (await world.deadOf("sink")).length === 1);
  // Kept while it is the same one.
  const same = await world.restarted(async () => {});
  await same.publish("sink.v1", "2");
  await same.until(async () => (await same.deadOf("sink")).length === 2);
  const key = { name: "sink", namespace: "default" };
  const other = await same.restarted(async () => {
    const { spec } = await same.client.get(subscriptions, key);
    await same.client.delete(subscriptions, key);
    await same.client.create(subscriptions, { metadata: key, spec });
  });
  const { uid } = (await other.client.get(subscriptions, key)).metadata;
  await other.until(async () => {
    const queue = other.eventing.queue();
    if ((await queue?.get("subscriptions", "default/sink")) !== uid) return false;
    return (await queue?.find("subscription/default/sink")) !== undefined;
  });
  expect(await other.deadOf("sink")).toEqual([]);
  await other.publish("sink.v1", "3");
  await other.until(async () => (await other.deadOf("sink")).length === 1);
});
