import { createServer, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type KubeClient, silentLogger } from "@spry/kube";
import { type Consumer, openSqliteQueue, type Queue } from "@spry/queue";
import { createAdminHandler } from "./admin-handler.ts";
import { toMessage } from "../events/message.ts";

let queue: Queue;
let consumer: Consumer;
let server: Server;
/** What the API server says of the caller's rights. */
let allows = (_resource: string): boolean => true;

/** Stands for the API server's reviews. */
const reviews = {
  create: (
    { kind }: { kind: string },
    { spec }: { spec: { resourceAttributes?: { resource: string } } },
  ) =>
    Promise.resolve({
      status:
        kind === "TokenReview"
          ? { authenticated: true, user: { username: "someone" } }
          : { allowed: allows(spec.resourceAttributes?.resource ?? "") },
    }),
} as unknown as KubeClient;

beforeEach(async () => {
  allows = () => true;
  queue = await openSqliteQueue({ directory: mkdtempSync(path.join(tmpdir(), "admin-")) });
  consumer = await queue.consumer("subscription/shop/s", { subjects: "all" });
  server = createServer(
    createAdminHandler({
      client: reviews,
      queue: () => queue,
      calls: () => undefined,
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
  test("shows what nobody can write as JSON: data that is nested too deeply", async () => {
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

  test("refuses a path that is not valid", async () => {
    expect(await get("//")).toMatchObject({
      status: 400,
      body: { message: "the path is not valid" },
    });
  });
});
