import { readFileSync } from "node:fs";
import { type Transport } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { type ApiServer, createApiServer } from "../api-server.ts";
import {
  decodeProtobuf,
  encodeProtobuf,
  hasProtobuf,
  protobufMediaType,
} from "../protobuf/protobuf.ts";
import { builtin } from "../schema/schema.ts";

let server: ApiServer;
let transport: Transport;
const configMaps = "/api/v1/namespaces/default/configmaps";
const widgets = "/apis/example.com/v1/widgets";
const partial = "as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

beforeAll(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  transport = server.transport();
  await send("POST", configMaps, {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "settings" },
    data: { color: "blue" },
  });
  await send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "widgets.example.com" },
    spec: {
      group: "example.com",
      scope: "Cluster",
      names: { plural: "widgets", kind: "Widget" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object" } },
        },
      ],
    },
  });
  await vi.waitFor(async () => {
    expect((await send("GET", widgets, undefined, "application/json")).status).toBe(200);
  });
  await send("POST", widgets, {
    apiVersion: "example.com/v1",
    kind: "Widget",
    metadata: { name: "w" },
  });
});
afterAll(() => server.close());

test("every built-in kind has a protobuf form, of the release that is served", () => {
  // Otherwise: run tools/generate-kube-protobuf.
  const file = new URL("../generated/protobuf-messages.json", import.meta.url);
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ release: builtin.release });
  for (const { group, version, resources } of builtin.groupVersions) {
    const apiVersion = group ? `${group}/${version}` : version;
    for (const { kind } of resources) {
      expect([kind, hasProtobuf({ apiVersion, kind })]).toEqual([kind, true]);
      expect([kind, hasProtobuf({ apiVersion, kind: `${kind}List` })]).toEqual([kind, true]);
    }
  }
});

test("what is written in protobuf is stored as if it had come in JSON", async () => {
  const object = { apiVersion: "v1", kind: "ConfigMap", data: { a: "1" } };
  const inJson = await send("POST", configMaps, { ...object, metadata: { name: "in-json" } });
  const inProtobuf = await send(
    "POST",
    configMaps,
    encodeProtobuf({ ...object, metadata: { name: "in-protobuf" } } as never),
  );
  expect([inJson.status, inProtobuf.status]).toEqual([201, 201]);
  const comparable = ({ metadata, ...rest }: Record<string, unknown>) => ({
    ...rest,
    metadata: Object.keys(metadata as object),
  });
  expect(comparable(await inProtobuf.json())).toEqual(comparable(await inJson.json()));
});

describe("answers", () => {
  const both = `${protobufMediaType},application/json`;
  test.each([
    ["an object", `${configMaps}/settings`, both, protobufMediaType, "ConfigMap"],
    ["a list", configMaps, both, protobufMediaType, "ConfigMapList"],
    ["a failure", `${configMaps}/nothing`, both, protobufMediaType, "Status"],
    ["JSON when it is preferred", configMaps, `application/json,${both}`, "json", "ConfigMapList"],
    ["metadata", configMaps, `${protobufMediaType};${partial}`, protobufMediaType, "Partial"],
    [
      "metadata of custom resources",
      widgets,
      `${protobufMediaType};${partial}`,
      "proto",
      "Partial",
    ],
    ["custom resources", widgets, both, "json", "WidgetList"],
    ["custom resources without JSON", widgets, protobufMediaType, protobufMediaType, "Status"],
    ["a table", configMaps, withTable(both), "json", "Table"],
  ])("%s", async (_, path, accept, mediaType, kind) => {
    const response = await send("GET", path, undefined, accept);
    expect(response.headers.get("content-type")).toContain(mediaType);
    expect((await objectOf(response)).kind).toContain(kind);
  });

  test("406 when custom resources are wanted in protobuf only", async () => {
    const response = await send("GET", `${widgets}/w`, undefined, protobufMediaType);
    expect(response.status).toBe(406);
    expect(await objectOf(response)).toMatchObject({ kind: "Status", code: 406 });
  });
});

test("415 for custom resources in protobuf", async () => {
  const bytes = encodeProtobuf({ apiVersion: "v1", kind: "Node" });
  const renamed = Buffer.from(Buffer.from(bytes).toString("latin1").replace("Node", "Wood"));
  const response = await send("POST", widgets, new Uint8Array(renamed));
  expect(response.status).toBe(415);
});

test("a watch tells its events in frames", async () => {
  const abort = new AbortController();
  const request = new Request(`http://kubernetes.internal${configMaps}?watch=true`, {
    headers: { accept: protobufMediaType },
    signal: abort.signal,
  });
  const response = await transport(request);
  expect(response.headers.get("content-type")).toBe(`${protobufMediaType};stream=watch`);
  const { value } = (await response.body?.getReader().read()) ?? {};
  abort.abort();
  const frames = Buffer.from(value ?? []);
  const frame = frames.subarray(0, 4 + frames.readUInt32BE());
  expect(frame.subarray(4, 11).toString()).toBe("\n\x05ADDED");
  expect(decodeProtobuf(frame.subarray(frame.indexOf("k8s\0")))).toMatchObject({
    kind: "ConfigMap",
  });
});

function withTable(accept: string): string {
  return accept.replaceAll(/(?=,|$)/g, ";as=Table;g=meta.k8s.io;v=v1");
}

function send(method: string, path: string, body?: object, accept?: string): Promise<Response> {
  const isBytes = body instanceof Uint8Array;
  const headers = {
    "content-type": isBytes ? protobufMediaType : "application/json",
    ...(accept && { accept }),
  };
  const content = isBytes ? (body as Uint8Array<ArrayBuffer>) : JSON.stringify(body);
  const request = new Request(`http://kubernetes.internal${path}`, {
    method,
    headers,
    ...(body && { body: content }),
  });
  return transport(request);
}

async function objectOf(response: Response): Promise<Record<string, unknown>> {
  const isJson = response.headers.get("content-type") === "application/json";
  if (isJson) return (await response.json()) as Record<string, unknown>;
  return decodeProtobuf(new Uint8Array(await response.arrayBuffer()));
}
