/** From which event on a Subscription gets them: since it is ready, whenever its consumer is made. */
import { rmSync } from "node:fs";
import { type Subscription, subscriptions } from "@spry/function";
import { openSqliteQueue } from "@spry/queue";
import { expect, test } from "vitest";
import { toMessage } from "./events/message.ts";
import { serve, World } from "./testing/world.ts";

test("a Subscription that is ready gets what another queue had accepted before it was taken from", async () => {
  const world = await World.create();
  const got: string[] = [];
  const port = await serve((request, response) => {
    got.push(String(request.headers["ce-id"]));
    response.end();
  });
  await world.subscribe("sink", port);
  const name = { namespace: "default", name: "sink" };
  const subscription = await world.client.get(subscriptions, name);
  // Times of objects are whole seconds: it is ready from the next one on.
  const created = Date.parse(subscription.metadata.creationTimestamp ?? "");
  const lastTransitionTime = new Date(created + 1_000).toISOString();
  const condition = { type: "Subscription active", status: "True" as const, lastTransitionTime };
  const status = { ready: true, types: [], conditions: [condition] } as NonNullable<
    Subscription["status"]
  >;
  await world.client.update(subscriptions, { ...subscription, status }, { subresource: "status" });
  await world.until(() => Date.now() > created + 1_000);
  const attributes = { specversion: "1.0", source: "shop", type: "sink.v1" };
  await world.restarted(async () => {
    rmSync(world.directory, { recursive: true });
    const other = await openSqliteQueue({ directory: world.directory });
    const event = { attributes: { ...attributes, id: "1" }, data: new Uint8Array() };
    await other.append([toMessage(event)]);
    await other.close();
  });
  await world.until(() => got.length > 0);
  expect(got).toEqual(["1"]);
});

test("a Subscription gets what was accepted since it is ready, also where its consumer is made later, and nothing of before", async () => {
  const world = await World.create();
  const got: string[] = [];
  const port = await serve((request, response) => {
    got.push(String(request.headers["ce-id"]));
    response.end();
  });
  const accept = async (id: string) => {
    const other = await openSqliteQueue({ directory: world.directory });
    const attributes = { specversion: "1.0", source: "shop", type: "late.v1", id };
    await other.append([toMessage({ attributes, data: new Uint8Array() })]);
    await other.close();
  };
  const spec = {
    sink: "http://late.default.svc.cluster.local",
    source: "shop",
    types: ["late.v1"],
  };
  const next = await world.restarted(async () => {
    // All of it within one second, which is as exact as times of creation are.
    await new Promise((resolve) => setTimeout(resolve, 1_000 - (Date.now() % 1_000)));
    await accept("before");
    const metadata = { name: "late", namespace: "default" };
    const created = await world.client.create<Subscription>(subscriptions, { metadata, spec });
    await new Promise((resolve) => setTimeout(resolve, 5));
    const lastTransitionTime = new Date().toISOString();
    const condition = { type: "Subscription active", status: "True" as const, lastTransitionTime };
    const status = { ready: true, types: [], conditions: [condition] } as NonNullable<
      Subscription["status"]
    >;
    await world.client.update(subscriptions, { ...created, status }, { subresource: "status" });
    await accept("since");
  });
  await next.subscribe("late", port);
  await next.until(() => got.length > 0);
  expect(got).toEqual(["since"]);
});
