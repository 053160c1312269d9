/** The API server when it gets much: its memory stays bounded (after churn: `churn.full.test.ts`), and others' requests go on. */
import { once } from "node:events";
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

/** What as many connections cost that ask for nothing large: that of TLS in Node.js, which keeps most of it. */
async function memoryOfConnections(count: number): Promise<number> {
  const idle = await connections(count, "/healthz");
  const memory = server.memory;
  for (const socket of idle) socket.destroy();
  return memory;
}

test("2,000 watches of an object of 2.4 MB that are not read hold it once; others wait for less than 500 ms", async () => {
  await defineThings();
  const bare = await memoryOfConnections(2000);
  const data = "x".repeat(2_400_000);
  expect((await server.ask("POST", things, thing({ data }))).code).toBe(201);
  const others = server.probe();
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
}, 90_000);

test("2,000 answers of 2.4 MB that are not read are not kept for each", async () => {
  await defineThings();
  const bare = await memoryOfConnections(2000);
  const data = "x".repeat(2_400_000);
  expect((await server.ask("POST", things, thing({ data }))).code).toBe(201);
  const others = server.probe();
  const sockets = await connections(2000, `${things}/large`);
  const peak = server.memory;
  const slowest = await others.stop();
  for (const socket of sockets) socket.destroy();
  expect(peak - bare).toBeLessThan(300);
  expect(slowest).toBeLessThan(500);
}, 90_000);

/** An object of many small fields; the letter makes it differ from others. */
function manyFields(name: string, letter: string, fields: number): string {
  const data = Object.fromEntries(
    Array.from({ length: fields }, (_, index) => [`${letter}-${index.toString(36)}`, ""]),
  );
  return JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });
}

const configMaps = "/api/v1/namespaces/default/configmaps";

test("ten objects of 150,000 fields at once are refused in words; others wait for less than 200 ms", async () => {
  const bodies = Array.from({ length: 10 }, (_, index) => manyFields(`o${index}`, "a", 150_000));
  const others = server.probe();
  const outcomes = await Promise.all(bodies.map((body) => server.ask("POST", configMaps, body)));
  expect(outcomes.map(({ code }) => code)).toEqual(bodies.map(() => 413));
  expect(outcomes[0]?.body).toContain("more than 100000 fields");
  expect(await others.stop()).toBeLessThan(200);
}, 60_000);

test("five objects of nearly as many fields as there may be are written and changed; others wait for less than 200 ms", async () => {
  const bodies = (letter: string) =>
    Array.from({ length: 5 }, (_, index) => manyFields(`o${index}`, letter, 90_000));
  const [before, after] = [bodies("a"), bodies("b")];
  const others = server.probe();
  for (const [method, texts] of [
    ["POST", before],
    ["PUT", after],
  ] as const) {
    const outcomes = await Promise.all(
      texts.map((text, index) =>
        server.ask(method, method === "POST" ? configMaps : `${configMaps}/o${index}`, text),
      ),
    );
    expect(outcomes.filter(({ code }) => code >= 300)).toEqual([]);
  }
  expect(await others.stop()).toBeLessThan(200);
}, 90_000);

test("rules over literal lists are refused when they are written; others wait for less than 200 ms", async () => {
  const list = "[1,2,3,4,5,6,7,8]";
  const rule = `${["a", "b", "c", "d", "e", "f", "g", "h"].map((name) => `${list}.all(${name}, `).join("")}a > 0${")".repeat(8)}`;
  const others = server.probe();
  const { code, body } = await server.ask(
    "POST",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "ValidatingAdmissionPolicy",
      metadata: { name: "slow" },
      spec: {
        matchConstraints: {
          resourceRules: [
            { apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["configmaps"] },
          ],
        },
        validations: [{ expression: rule }],
      },
    },
  );
  expect(code).toBe(422);
  expect(body).toContain("exceeds budget by factor of");
  expect(await others.stop()).toBeLessThan(200);
});

test("1,000 objects that come, change and go leave the disk as it was", async () => {
  await server.stop();
  server = await ApiServerProcess.start("data");
  const round = async (index: number) => {
    const name = `o${index}`;
    const data = { a: "x".repeat(20_000), b: String(index) };
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data };
    await server.ask(
      "PATCH",
      `${configMaps}/${name}?fieldManager=f`,
      object,
      "application/apply-patch+yaml",
    );
    const patch = { data: { b: "changed" } };
    await server.ask("PATCH", `${configMaps}/${name}`, patch, "application/merge-patch+json");
  };
  const rounds = async (count: number) => {
    for (let index = 0; index < count; index++) await round(index);
    expect((await server.ask("DELETE", configMaps)).code).toBe(200);
  };
  await rounds(100);
  const { disk } = server;
  await rounds(1000);
  // In moments without writes; a write now and then brings what the log holds into the file.
  const written = async () => {
    await server.ask("POST", configMaps, manyFields("last", "a", 10_000));
    await server.ask("DELETE", `${configMaps}/last`);
    return server.disk;
  };
  await expect.poll(written, { timeout: 30_000, interval: 200 }).toBeLessThan(disk * 1.5);
}, 400_000);
