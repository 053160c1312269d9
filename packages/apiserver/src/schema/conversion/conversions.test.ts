import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { KubeClient, type Resource, resources, type UnknownObject } from "@spry/kube";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "../../index.ts";

let webhook: Server;
let caBundle: string;
let calls = 0;
let failure: string | undefined;
let server: ApiServer;
let client: KubeClient;

interface Review {
  apiVersion: string;
  kind: string;
  request: { uid: string; desiredAPIVersion: string; objects: UnknownObject[] };
}

/** `spec.size` of v1 is `spec.length` of v2. */
function converted({ apiVersion, kind, request }: Review): string {
  const { uid, desiredAPIVersion, objects } = request;
  const field = desiredAPIVersion.endsWith("v2") ? "length" : "size";
  const convertedObjects = objects.map((object) => {
    const { size, length } = (object.spec ?? {}) as { size?: number; length?: number };
    return { ...object, apiVersion: desiredAPIVersion, spec: { [field]: size ?? length } };
  });
  const result = failure ? { status: "Failure", message: failure } : { status: "Success" };
  return JSON.stringify({ apiVersion, kind, response: { uid, result, convertedObjects } });
}

beforeAll(async () => {
  const directory = mkdtempSync(path.join(tmpdir(), "conversion-"));
  const file = (name: string) => path.join(directory, name);
  const subject = ["-subj", "/CN=hook", "-addext", "subjectAltName=IP:127.0.0.1"];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const out = ["-keyout", file("key"), "-out", file("crt")];
  execFileSync("openssl", ["req", "-x509", ...key, ...subject, ...out], { stdio: "ignore" });
  caBundle = readFileSync(file("crt")).toString("base64");
  const tls = { key: readFileSync(file("key")), cert: readFileSync(file("crt")) };
  rmSync(directory, { recursive: true });
  webhook = createServer(tls, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      calls++;
      response.end(converted(JSON.parse(Buffer.concat(chunks).toString()) as Review));
    });
  });
  await new Promise<void>((resolve) => webhook.listen(0, "127.0.0.1", resolve));
});
afterAll(() => void webhook.close());

const group = "example.com";
const rods = (version: string): Resource => ({
  group,
  version,
  kind: "Rod",
  plural: "rods",
  namespaced: true,
});

beforeEach(async () => {
  calls = 0;
  failure = undefined;
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
  const { port } = webhook.address() as AddressInfo;
  const clientConfig = { url: `https://127.0.0.1:${port}/`, caBundle };
  const version = (name: string, field: string) => ({
    name,
    served: true,
    storage: name === "v2",
    schema: {
      openAPIV3Schema: {
        type: "object",
        properties: { spec: { type: "object", properties: { [field]: { type: "integer" } } } },
      },
    },
  });
  await client.create(resources.customResourceDefinitions, {
    metadata: { name: "rods.example.com" },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: "rods", kind: "Rod" },
      versions: [version("v1", "size"), version("v2", "length")],
      conversion: {
        strategy: "Webhook",
        webhook: { clientConfig, conversionReviewVersions: ["v1"] },
      },
    },
  });
});
afterEach(() => server.close());

const namespace = "default";
const create = (name: string, size: number) =>
  client.create(rods("v1"), { metadata: { namespace, name }, spec: { size } } as UnknownObject);

test("each version shows an object in its own words", async () => {
  expect(await create("a", 3)).toMatchObject({ apiVersion: "example.com/v1", spec: { size: 3 } });
  expect(await client.get(rods("v2"), { namespace, name: "a" })).toMatchObject({
    spec: { length: 3 },
  });
  await client.patch(rods("v2"), { namespace, name: "a" }, { spec: { length: 4 } });
  expect(await client.get(rods("v1"), { namespace, name: "a" })).toMatchObject({
    spec: { size: 4 },
  });
});

test("a list is converted in one call, and what has been converted is remembered", async () => {
  for (const name of ["a", "b", "c"]) {
    const object = { metadata: { namespace, name }, spec: { length: 1 } };
    await client.create(rods("v2"), object);
  }
  expect(calls).toBe(0);
  const { items } = await client.list(rods("v1"), { namespace });
  expect(items).toMatchObject(Array.from({ length: 3 }, () => ({ spec: { size: 1 } })));
  await client.list(rods("v1"), { namespace });
  expect(calls).toBe(1);
});

test("a watch tells changes in its version, in their order", async () => {
  const ending = new AbortController();
  const seen: unknown[] = [];
  const watching = (async () => {
    const options = { namespace, resourceVersion: "0", signal: ending.signal };
    for await (const { type, object } of client.watch(rods("v1"), options)) {
      seen.push([type, (object as UnknownObject).spec]);
      if (seen.length === 3) break;
    }
  })();
  const object = { metadata: { namespace, name: "a" }, spec: { length: 1 } };
  await client.create(rods("v2"), object);
  await client.patch(rods("v2"), { namespace, name: "a" }, { spec: { length: 2 } });
  await client.delete(rods("v2"), { namespace, name: "a" });
  await watching;
  ending.abort();
  expect(seen).toEqual([
    ["ADDED", { size: 1 }],
    ["MODIFIED", { size: 2 }],
    ["DELETED", { size: 2 }],
  ]);
});

test("the error names a webhook that cannot convert, and nothing is stored", async () => {
  failure = "no rods today";
  await expect(create("a", 3)).rejects.toThrow(
    "conversion webhook for example.com/v1, Kind=Rod failed: no rods today",
  );
  failure = undefined;
  expect((await client.list(rods("v2"), { namespace })).items).toEqual([]);
});
