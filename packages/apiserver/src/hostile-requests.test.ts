import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "./index.ts";

let server: ApiServer;
beforeAll(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
});
afterAll(() => server.close());

const configMaps = "/api/v1/namespaces/default/configmaps";
const json = { "content-type": "application/json" };
const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
const named = (rest: string) =>
  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}${rest}}`;
const wide = (fields: number) =>
  JSON.stringify(
    Object.fromEntries(Array.from({ length: fields }, (_, index) => [`k${index}`, ""])),
  );
const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${Array.from({ length: 9 }, (_, i) => `${"bcdefghij"[i]}: &${"bcdefghij"[i]} [${Array(9).fill(`*${"abcdefghi"[i]}`).join(",")}]`).join("\n")}`;

interface Row {
  method?: string;
  path?: string;
  headers?: Record<string, string>;
  body?: string;
}

describe("a request that makes no sense gets an error that says so", () => {
  test.each<[string, Row, number, string]>([
    ["no JSON", { body: "{" }, 400, "json parse error: unexpected end of JSON input"],
    ["a list", { body: "[]" }, 400, "cannot unmarshal array"],
    ["nothing", { body: "" }, 400, "(<empty>)"],
    ["nested deeply", { body: named(`,"data":${deep(1000)}`) }, 400, "nested deeper"],
    ["too large", { body: named(`,"data":{"a":"${"x".repeat(3 << 20)}"}`) }, 413, "too large"],
    ["a prototype", { body: named(',"__proto__":{"a":1}') }, 400, "__proto__"],
    [
      "more fields than any cluster keeps",
      { body: named(`,"data":${wide(100_000)}`) },
      413,
      "more than 100000 fields",
    ],
    [
      "more fields under a name that only metadata has",
      { body: named(`,"data":{"managedFields":${wide(100_000)}}`) },
      413,
      "more than 100000 fields",
    ],
    [
      "another kind",
      { body: '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}' },
      400,
      "cannot be handled as a ConfigMap",
    ],
    [
      "an apiVersion that is a list",
      { body: '{"apiVersion":["v1"],"kind":"ConfigMap"}' },
      400,
      "unmarshal array into Go struct field .apiVersion",
    ],
    [
      "a kind that is a number",
      { body: '{"apiVersion":"v1","kind":1}' },
      400,
      "unmarshal number into Go struct field .kind",
    ],
    ["metadata of a wrong type", { body: '{"metadata":"a"}' }, 400, "of type v1.ObjectMeta"],
    [
      "labels of a wrong type",
      { body: '{"metadata":{"name":"a","labels":{"a":1}}}' },
      400,
      "cannot unmarshal number",
    ],
    [
      "an aliased YAML bomb",
      { headers: { "content-type": "application/yaml" }, body: bomb },
      400,
      "more than",
    ],
    [
      "another media type",
      { headers: { "content-type": "text/csv" }, body: "a" },
      415,
      "accepted media types",
    ],
    [
      "protobuf that is none",
      {
        headers: { "content-type": "application/vnd.kubernetes.protobuf" },
        body: "k8s\0\u00ff\u00ff",
      },
      400,
      "protobuf",
    ],
    [
      "a media type we do not write",
      { method: "GET", headers: { accept: "application/xml" } },
      406,
      "Available representations: application/json, application/yaml",
    ],
    [
      "a bad selector",
      { method: "GET", path: `${configMaps}?labelSelector=a%20b` },
      400,
      "unable to parse",
    ],
    ["a bad continue token", { method: "GET", path: `${configMaps}?continue=x` }, 400, "continue"],
    ["a bad escape", { method: "GET", path: "/api/v1/namespaces/%zz/configmaps" }, 400, "escape"],
    [
      "an unknown resource",
      { method: "GET", path: "/api/v1/things" },
      404,
      "could not find the requested resource",
    ],
    [
      "an unknown version",
      { method: "GET", path: "/apis/apps/v9/deployments" },
      404,
      "could not find the requested resource",
    ],
    ["a verb that is not there", { method: "PUT" }, 405, "does not allow this method"],
    [
      "deletion in all namespaces",
      { method: "DELETE", path: "/api/v1/configmaps" },
      405,
      "does not allow this method",
    ],
    ["an unknown dry run", { path: `${configMaps}?dryRun=Some`, body: named("") }, 422, "dryRun"],
    [
      "an unknown field validation",
      { path: `${configMaps}?fieldValidation=Some`, body: named("") },
      422,
      "fieldValidation",
    ],
    [
      "a JSON patch that is none",
      {
        method: "PATCH",
        path: `${configMaps}/a`,
        headers: { "content-type": "application/json-patch+json" },
        body: "{}",
      },
      404,
      "not found",
    ],
  ])(
    "%s",
    async (_, { method = "POST", path = configMaps, headers = json, body }, code, message) => {
      const init = { method, headers, ...(body !== undefined && { body }) };
      const response = await server.transport()(new Request(`http://x${path}`, init));
      const status = (await response.json()) as { message: string };
      expect([response.status, status]).toMatchObject([
        code,
        { kind: "Status", status: "Failure", code },
      ]);
      expect(status.message).toContain(message);
    },
  );
});

test("a patch cannot reach an object's prototype", async () => {
  const transport = server.transport();
  await transport(
    new Request(`http://x${configMaps}`, { method: "POST", headers: json, body: named("") }),
  );
  for (const [type, body] of [
    ["application/json-patch+json", '[{"op":"add","path":"/__proto__/polluted","value":1}]'],
    ["application/merge-patch+json", '{"constructor":{"prototype":{"polluted":1}}}'],
  ] as const) {
    const init = { method: "PATCH", headers: { "content-type": type }, body };
    await transport(new Request(`http://x${configMaps}/a`, init));
  }
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
});

test.each(["constructor", "__proto__", "toString", "hasOwnProperty"])(
  "%s is a word like any other",
  async (word) => {
    const ask = (path: string, object?: object) =>
      server.transport()(
        new Request(`http://x/api/v1/namespaces/default/${path}`, {
          method: object ? "POST" : "GET",
          headers: json,
          ...(object && { body: JSON.stringify(object) }),
        }),
      );
    const metadata = { generateName: "word-" };
    const secret = { apiVersion: "v1", kind: "Secret", metadata, type: word };
    expect((await ask("secrets", secret)).status).toBe(201);
    expect((await ask(`secrets?fieldSelector=type%3D${word}`)).status).toBe(200);
    expect((await ask(`secrets?fieldSelector=${word}%3Da`)).status).toBe(400);
    expect((await ask(`events?fieldSelector=${word}%3Da`)).status).toBe(400);
    expect((await ask(word)).status).toBe(404);
  },
);
