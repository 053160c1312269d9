import { createServer, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type KubeClient, silentLogger } from "@spry/kube";
import { type Consumer, openSqliteQueue, type Queue } from "@spry/queue";
import { createAdminHandler } from "./admin-handler.ts";
import { callerOf } from "./caller.ts";
import { toMessage } from "../events/message.ts";
import { EventTraces } from "../tracing/event-traces.ts";
import { SpanExporter } from "../tracing/span-exporter.ts";

let queue: Queue;
let consumer: Consumer;
let server: Server;
/** What the API server says of the caller's rights. */
let allows = (_resource: string): boolean => true;
/** When it says so. */
let reviewed = Promise.resolve();

/** Stands for the API server's reviews. */
const reviews = {
  create: (
    { kind }: { kind: string },
    { spec }: { spec: { resourceAttributes?: { resource: string } } },
  ) =>
    reviewed.then(() => ({
      status:
        kind === "TokenReview"
          ? { authenticated: true, user: { username: "someone" } }
          : { allowed: allows(spec.resourceAttributes?.resource ?? "") },
    })),
} as unknown as KubeClient;

beforeEach(async () => {
  allows = () => true;
  reviewed = Promise.resolve();
  queue = await openSqliteQueue({ directory: mkdtempSync(path.join(tmpdir(), "admin-")) });
  consumer = await queue.consumer("subscription/shop/s", { subjects: "all" });
  server = createServer(
    createAdminHandler({
      client: reviews,
      queue: () => queue,
      calls: { cancel: async () => false, run: async () => undefined },
      metrics: { accepted: () => {} },
      traces: new EventTraces(new SpanExporter(() => undefined, silentLogger)),
      callerOf: (request) => callerOf(reviews, request),
      log: silentLogger,
    }),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
});
afterEach(async () => {
  server.close();
  await queue.close();
});

async function get(target: string) {
  const { port } = server.address() as AddressInfo;
  const headers = { authorization: "Bearer any" };
  const response = await fetch(`http://127.0.0.1:${port}${target}`, { headers });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const event = (id: string, data: string) =>
  toMessage({
    attributes: {
      specversion: "1.0",
      id,
      source: "/s",
      type: "t.v1",
      datacontenttype: "application/json",
    },
    data: Buffer.from(data),
  });
const letters = "/v1/namespaces/shop/subscriptions/s/deadletters";

async function bury(count: number): Promise<void> {
  let left = count;
  while (left > 0) {
    for (const delivery of await consumer.next(left, AbortSignal.timeout(20_000))) {
      delivery.bury({ reason: "Refused", message: "no" });
      left--;
    }
  }
}

describe("administration", () => {
  test("shows data that is nested too deeply to be written as JSON", async () => {
    await queue.append([event("1", "[".repeat(6_000) + "]".repeat(6_000))]);
    await bury(1);
    for (const target of [`${letters}?limit=5`, "/v1/events?after=0"]) {
      const { status, body } = await get(target);
      expect(status).toBe(200);
      expect(body).toMatchObject({
        items: [{ event: { id: "1", data_base64: expect.stringMatching(/^W1tb/) as string } }],
      });
    }
  });

  test("lists dead letters in pages of bounded size, of which none is missing", async () => {
    const data = JSON.stringify("x".repeat(1024 ** 2 - 2));
    for (let id = 0; id < 6; id++) await queue.append([event(String(id), data)]);
    await bury(6);
    const seen: number[] = [];
    for (let after: unknown = 0; after !== undefined;) {
      const { body } = await get(`${letters}?limit=100&after=${String(after)}`);
      seen.push((body["items"] as unknown[]).length);
      after = body["next"];
    }
    expect(seen).toEqual([4, 2]);
    const { body } = await get("/v1/events?after=0&limit=100");
    expect(body["items"]).toHaveLength(4);
  });

  test("replays what was there before the Subscription for those alone who may read all events", async () => {
    await queue.append([event("before", "1")]);
    await queue.consumer("subscription/shop/late", { subjects: "all" });
    await queue.append([event("after", "1")]);
    const waiting = async () => {
      const { port } = server.address() as AddressInfo;
      const base = `http://127.0.0.1:${port}/v1/namespaces/shop/subscriptions/late`;
      const headers = { authorization: "Bearer any" };
      const body = JSON.stringify({ position: 0 });
      const { status } = await fetch(`${base}/replay`, { method: "POST", headers, body });
      return [
        status,
        ((await (await fetch(base, { headers })).json()) as { waiting: number }).waiting,
      ];
    };
    allows = (resource) => resource !== "events";
    expect(await waiting()).toEqual([204, 1]);
    allows = () => true;
    expect(await waiting()).toEqual([204, 2]);
  });

  test("refuses a path that is not valid", async () => {
    expect(await get("//")).toMatchObject({
      status: 400,
      body: { message: "the path is not valid" },
    });
  });
});

test("strangers make the API server review a bounded number of tokens at once", async () => {
  const review = Promise.withResolvers<void>();
  reviewed = review.promise;
  const statuses: number[] = [];
  const all = Array.from({ length: 40 }, async () => statuses.push((await get(letters)).status));
  // The others are still being reviewed.
  await expect.poll(() => statuses).toEqual(Array.from({ length: 8 }, () => 503));
  review.resolve();
  await Promise.all(all);
  expect(statuses.filter((status) => status === 200)).toHaveLength(32);
  expect(await get(letters)).toMatchObject({ status: 200 });
});
