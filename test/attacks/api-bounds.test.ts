/** The API server when it gets much: its memory stays bounded, and others' requests go on. */
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { type TLSSocket } from "node:tls";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ApiServerProcess } from "../support/api-server.ts";

let server: ApiServerProcess;
beforeEach(async () => {
  server = await ApiServerProcess.start();
});
afterEach(() => server.stop());

const things = "/apis/example.com/v1/things";
const schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

async function defineThings(): Promise<void> {
  const { code, body } = await server.ask(
    "POST",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "things.example.com" },
      spec: {
        group: "example.com",
        scope: "Cluster",
        names: { plural: "things", kind: "Thing" },
        versions: [
          { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } },
        ],
      },
    },
  );
  expect(code, body).toBe(201);
}

const thing = (rest: object) => ({
  apiVersion: "example.com/v1",
  kind: "Thing",
  metadata: { name: "large" },
  ...rest,
});

/** How long requests of another client take while something is under way. */
function probe(): { stop(): Promise<number> } {
  let slowest = 0;
  let isOver = false;
  const probing = (async () => {
    while (!isOver) {
      const { code, ms } = await server.ask("GET", "/api/v1/namespaces/default");
      expect(code).toBe(200);
      slowest = Math.max(slowest, ms);
      await pause(20);
    }
  })();
  return {
    async stop() {
      isOver = true;
      await probing;
      return slowest;
    },
  };
}

async function connections(count: number, target: string): Promise<TLSSocket[]> {
  const open: TLSSocket[] = [];
  while (open.length < count) {
    const some = Array.from({ length: Math.min(50, count - open.length) }, async () => {
      const socket = await server.get(target);
      socket.on("error", () => {});
      await once(socket, "readable");
      return socket;
    });
    open.push(...(await Promise.all(some)));
  }
  return open;
}

/** What as many connections cost that ask for nothing large, once and again: that of TLS in Node.js, which keeps most of it. */
async function memoryOfConnections(count: number): Promise<number> {
  let most = 0;
  for (const _ of [1, 2]) {
    const idle = await connections(count, "/healthz");
    most = server.memory;
    for (const socket of idle) socket.destroy();
  }
  return most;
}

test("2,000 watches of an object of 2.4 MB that nobody reads hold it once; others wait for less than 500 ms", async () => {
  await defineThings();
  const bare = await memoryOfConnections(2000);
  const data = "x".repeat(2_400_000);
  expect((await server.ask("POST", things, thing({ data }))).code).toBe(201);
  const others = probe();
  const sockets = await connections(2000, `${things}?watch=true`);
  let peak = server.memory;
  for (let change = 0; change < 30; change++) {
    const patch = { change };
    const type = "application/merge-patch+json";
    const { code } = await server.ask("PATCH", `${things}/large`, patch, type);
    expect(code).toBe(200);
    peak = Math.max(peak, server.memory);
  }
  const slowest = await others.stop();
  for (const socket of sockets) socket.destroy();
  expect(peak - bare).toBeLessThan(300);
  expect(slowest).toBeLessThan(500);
  await expect.poll(() => server.memory, { timeout: 60_000 }).toBeLessThan(bare * 1.3);
}, 90_000);

test("2,000 answers of 2.4 MB that nobody reads are not kept for each", async () => {
  await defineThings();
  const bare = await memoryOfConnections(2000);
  const data = "x".repeat(2_400_000);
  expect((await server.ask("POST", things, thing({ data }))).code).toBe(201);
  const others = probe();
  const sockets = await connections(2000, `${things}/large`);
  const peak = server.memory;
  const slowest = await others.stop();
  for (const socket of sockets) socket.destroy();
  expect(peak - bare).toBeLessThan(300);
  expect(slowest).toBeLessThan(500);
}, 90_000);
