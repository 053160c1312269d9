/** Numbers come out as they went in, through everything that the server does with an object. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { transportOrigin } from "@spry/kube";
import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "./index.ts";

const big = "9007199254740993";
const things = "/apis/numbers.test/v1/namespaces/default/things";
const dataDir = mkdtempSync(path.join(tmpdir(), "numbers-"));
let server: ApiServer;

const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "things.numbers.test" },
  spec: {
    group: "numbers.test",
    scope: "Namespaced",
    names: { plural: "things", kind: "Thing" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [{ name: "A", type: "integer", jsonPath: ".a" }],
        schema: {
          openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        },
      },
    ],
  },
};

beforeAll(async () => {
  server = await createApiServer({ dataDir });
  await send(
    "POST",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    JSON.stringify(definition),
  );
});
afterAll(async () => {
  await server.close();
  rmSync(dataDir, { recursive: true });
});

interface Answer {
  status: number;
  text: string;
}

async function send(
  method: string,
  target: string,
  body?: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await server.transport()(
    new Request(transportOrigin + target, {
      method,
      headers: { "content-type": "application/json", accept: "application/json", ...headers },
      ...(body !== undefined && { body }),
    }),
  );
  return { status: response.status, text: await response.text() };
}

const thing = (name: string, rest: string) =>
  `{"apiVersion":"numbers.test/v1","kind":"Thing","metadata":{"name":"${name}"},${rest}}`;

/** The text of the field `a` in an answer. */
const fieldOf = ({ text }: Answer) => /"a":(-?[^,}\]]+)/.exec(text)?.[1];

describe("an integer of 64 bits keeps its digits", () => {
  test("whatever it is, as a field of a custom resource", async () => {
    let index = 0;
    const integers = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    await fc.assert(
      fc.asyncProperty(integers, async (value) => {
        const name = `any-${index++}`;
        const made = await send("POST", things, thing(name, `"a":${value}`));
        expect(fieldOf(made)).toBe(String(value));
        expect(fieldOf(await send("GET", `${things}/${name}`))).toBe(String(value));
      }),
      { numRuns: 50 },
    );
  });

  test("in lists, Tables, YAML and watches", async () => {
    await send("POST", things, thing("shown", `"a":${big},"l":[[{"b":-${big}}]]`));
    const list = await send("GET", `${things}?fieldSelector=metadata.name%3Dshown`);
    expect(list.text).toContain(`"l":[[{"b":-${big}}]]`);
    const asTable = { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" };
    const table = await send("GET", `${things}/shown`, undefined, asTable);
    expect(table.text).toContain(`"cells":["shown",${big}]`);
    const yaml = await send("GET", `${things}/shown`, undefined, { accept: "application/yaml" });
    expect(yaml.text).toContain(`a: ${big}\n`);
    expect(yaml.text).toContain(`- - b: -${big}\n`);
    const watched = await send("GET", `${things}?watch=true&timeoutSeconds=1`);
    expect(watched.text).toContain(`"a":${big}`);
  });

  test("through updates and every kind of patch", async () => {
    const patched = (type: string, body: string, query = "") =>
      send("PATCH", `${things}/changed${query}`, body, { "content-type": `application/${type}` });
    await send("POST", things, thing("changed", `"a":${big}`));
    expect(fieldOf(await patched("merge-patch+json", '{"b":9007199254740995}'))).toBe(big);
    const copied = await patched(
      "json-patch+json",
      `[{"op":"test","path":"/a","value":${big}},{"op":"copy","from":"/b","path":"/c"}]`,
    );
    expect(copied.text).toContain('"c":9007199254740995');
    const refused = await patched(
      "json-patch+json",
      '[{"op":"test","path":"/a","value":9007199254740992}]',
    );
    expect(refused.status).toBe(422);
    const owned = thing("changed", '"d":9007199254740997');
    expect((await patched("apply-patch+yaml", owned, "?fieldManager=one")).text).toContain(
      '"d":9007199254740997',
    );
    const other = thing("changed", '"d":9007199254740996');
    expect((await patched("apply-patch+yaml", other, "?fieldManager=two")).status).toBe(409);
    const { text } = await send("GET", `${things}/changed`);
    const again = await send("PUT", `${things}/changed`, text);
    expect(again.text).toBe(text);
    const status = await send(
      "PUT",
      `${things}/changed/status`,
      text.replace(/}$/, `,"status":{"seen":${big}}}`),
    );
    expect(status.text).toContain(`"seen":${big}`);
  });

  test("over a restart", async () => {
    await send("POST", things, thing("kept", `"a":${big}`));
    await server.close();
    server = await createApiServer({ dataDir });
    const label = '{"metadata":{"labels":{"x":"y"}}}';
    const headers = { "content-type": "application/merge-patch+json" };
    expect(fieldOf(await send("PATCH", `${things}/kept`, label, headers))).toBe(big);
  });

  test("in a built-in kind, as JSON, YAML and protobuf", async () => {
    const pods = "/api/v1/namespaces/default/pods";
    await send(
      "POST",
      "/api/v1/namespaces/default/serviceaccounts",
      '{"metadata":{"name":"default"}}',
    );
    const made = await send(
      "POST",
      pods,
      `{"metadata":{"name":"long"},"spec":{"terminationGracePeriodSeconds":${big},"containers":[{"name":"c","image":"i"}]}}`,
    );
    expect(made.text).toContain(`"terminationGracePeriodSeconds":${big}`);
    const protobuf = "application/vnd.kubernetes.protobuf";
    const response = await server.transport()(
      new Request(`${transportOrigin}${pods}/long`, { headers: { accept: protobuf } }),
    );
    const bytes = new Uint8Array(await response.arrayBuffer());
    const types = { "content-type": protobuf };
    const again = await send("PUT", `${pods}/long`, bytes, types);
    expect(again.text).toContain(`"terminationGracePeriodSeconds":${big}`);
  });
});

describe("what no integer of 64 bits holds", () => {
  test.each([
    ["9223372036854775808", "9223372036854776000"],
    ["12345678901234567890", "12345678901234567000"],
    ["1.10", "1.1"],
    ["1e3", "1000"],
    ["1e21", "1e+21"],
    ["-0", "0"],
  ])("is a double in a custom resource: %s", async (value, kept) => {
    const made = await send("POST", `${things}?dryRun=All`, thing("double", `"a":${value}`));
    expect(fieldOf(made)).toBe(kept);
  });

  test.each(["1e400", "-1e400", "9".repeat(400)])(
    "is refused beyond doubles: %s",
    async (value) => {
      const made = await send("POST", things, thing("endless", `"a":{"b":[${value}]}`));
      expect(made.status).toBe(400);
      expect(made.text).toContain(
        `cannot unmarshal number ${value.slice(0, 100)} into Go value of type float64`,
      );
      const patch = await send("PATCH", `${things}/shown`, `{"b":${value}}`, {
        "content-type": "application/merge-patch+json",
      });
      expect(patch.status).toBe(400);
    },
  );

  test("is refused in a field of 64 bits", async () => {
    const made = await send(
      "POST",
      "/api/v1/namespaces/default/pods",
      '{"metadata":{"name":"p"},"spec":{"terminationGracePeriodSeconds":9223372036854775808,"containers":[{"name":"c","image":"i"}]}}',
    );
    expect(made.status).toBe(400);
    expect(made.text).toContain("spec.terminationGracePeriodSeconds of type int64");
  });
});

test.each([
  ["0x1F", "31"],
  ["017", "15"],
  ["0o17", "15"],
  ["1_000", "1000"],
  ["yes", "true"],
  ["Off", "false"],
  ["~", "null"],
  [`+${big}`, big],
  ["'yes'", '"yes"'],
  ["2001-01-01", '"2001-01-01"'],
  ["1e400", '"1e400"'],
])("YAML is read as Go's library reads it: %s", async (value, kept) => {
  const body = `apiVersion: numbers.test/v1\nkind: Thing\nmetadata: {name: yaml}\na: ${value}\n`;
  const headers = { "content-type": "application/yaml" };
  expect(fieldOf(await send("POST", `${things}?dryRun=All`, body, headers))).toBe(kept);
});

test("half a character is written as U+FFFD, for no UTF-8 has it", async () => {
  const made = await send("POST", things, thing("half", String.raw`"a":"x\ud800y","\udc00":1`));
  expect(made.text).toContain('"a":"x\uFFFDy"');
  expect(made.text).toContain('"\uFFFD":1');
});
