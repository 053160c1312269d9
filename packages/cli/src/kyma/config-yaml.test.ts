import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readManifests } from "../manifests.ts";

let outer: string;
let directory: string;
afterAll(() => rmSync(outer, { recursive: true }));
beforeAll(() => {
  outer = mkdtempSync(path.join(tmpdir(), "kyma-"));
  directory = path.join(outer, "function");
  mkdirSync(directory);
  writeFileSync(path.join(directory, "handler.js"), "module.exports = { main: () => 1 };");
  writeFileSync(path.join(directory, "package.json"), "{}");
});

function read(text: string) {
  const file = path.join(directory, "config.yaml");
  writeFileSync(file, text);
  return readManifests([file]).map(({ object }) => object);
}

const base = `name: shop
namespace: orders
runtime: nodejs24
source:
  sourceType: inline
`;

test("a Function with the code next to it, and the resources that the documentation spells with an s", () => {
  const [fn, ...others] = read(`${base}labels: { team: a }
runtimeLabels: { pod: b }
resources:
  limits: { cpu: 100m, memory: 128Mi }
env:
  - name: A
    value: b
`);
  expect(others).toEqual([]);
  expect(fn).toMatchObject({
    apiVersion: "serverless.kyma-project.io/v1alpha2",
    metadata: {
      name: "shop",
      namespace: "orders",
      labels: { team: "a", "app.kubernetes.io/name": "shop" },
    },
    spec: {
      runtime: "nodejs24",
      source: { inline: { source: "module.exports = { main: () => 1 };", dependencies: "{}" } },
      resourceConfiguration: {
        function: { resources: { limits: { cpu: "100m", memory: "128Mi" } } },
      },
      labels: { pod: "b" },
      env: [{ name: "A", value: "b" }],
    },
  });
});

test("subscriptions of both versions, and APIRules", () => {
  const v0 = read(`${base}subscriptions:
  - filter:
      filters:
        - eventSource: { property: source, type: exact, value: "" }
          eventType: { property: type, type: exact, value: order.created.v1 }
apiRules:
  - service: { host: shop.example.com }
    rules:
      - path: /.*
        methods: [GET]
        accessStrategies: [{ handler: allow }]
`);
  expect(v0.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
    "Function shop",
    "Subscription shop",
    "APIRule shop",
  ]);
  expect(v0[1]).toMatchObject({
    spec: { sink: "http://shop.orders.svc.cluster.local", types: ["order.created.v1"] },
  });
  expect(v0[2]).toMatchObject({
    spec: { hosts: ["shop.example.com"], rules: [{ path: "/*", noAuth: true }] },
  });
  const v1 = read(`schemaVersion: v1
${base}subscriptions:
  - typeMatching: exact
    source: shop
    types: [a, b]
`);
  expect(v1[1]).toMatchObject({
    spec: { typeMatching: "exact", source: "shop", types: ["a", "b"] },
  });
});

test("source in Git", () => {
  const [fn] = read(`name: shop
runtime: python312
source:
  sourceType: git
  url: https://example.com/shop.git
  baseDir: fn
  credentialsSecretName: git
  credentialsType: key
`);
  expect(fn).toMatchObject({
    spec: {
      source: {
        gitRepository: {
          url: "https://example.com/shop.git",
          reference: "main",
          baseDir: "fn",
          auth: { type: "key", secretName: "git" },
        },
      },
    },
  });
});

test("paths and rights of the first version of APIRules keep their meaning", () => {
  const [, rule] = read(`${base}apiRules:
  - service: { host: shop }
    rules:
      - path: /api/.*
        accessStrategies:
          - handler: allow
          - handler: jwt
            config:
              jwksUrls: [https://issuer.example.com/keys]
              trustedIssuers: [https://issuer.example.com]
              requiredScope: [orders.read]
`);
  expect(rule).toMatchObject({
    spec: {
      rules: [
        {
          path: "/api/{**}",
          jwt: {
            authentications: [
              { issuer: "https://issuer.example.com", jwksUri: "https://issuer.example.com/keys" },
            ],
            authorizations: [{ requiredScopes: ["orders.read"] }],
          },
        },
      ],
    },
  });
  expect((rule as unknown as { spec: { rules: unknown[] } }).spec.rules[0]).not.toHaveProperty(
    "noAuth",
  );
});

test("numbers are texts where the Function has texts, as in the original", () => {
  const [fn] = read(`${base}labels: { version: 1 }
env:
  - { name: PORT, value: 8080 }
resource:
  limits: { cpu: 1 }
`);
  expect(fn).toMatchObject({
    metadata: { labels: { version: "1" } },
    spec: {
      env: [{ name: "PORT", value: "8080" }],
      resourceConfiguration: { function: { resources: { limits: { cpu: "1" } } } },
    },
  });
});

test("references to values in the spelling of the documentation's sample", () => {
  const [fn] = read(`${base}env:
  - { name: A, valueFrom: { configMapKeyRef: { Name: settings, Key: a } } }
  - { name: B, valueFrom: { secretKeyRef: { Name: keys, Key: b } } }
`);
  expect(fn).toMatchObject({
    spec: {
      env: [
        { name: "A", valueFrom: { configMapKeyRef: { name: "settings", key: "a" } } },
        { name: "B", valueFrom: { secretKeyRef: { name: "keys", key: "b" } } },
      ],
    },
  });
});

test("of several paths the narrower one is asked first: the server refuses rules that an earlier one hides", () => {
  const [, rule] = read(`${base}apiRules:
  - service: { host: shop }
    rules:
      - methods: [GET, PUT]
        accessStrategies: []
      - { path: /a/.*, methods: [PUT] }
      - { path: /a/long/.*, methods: [PUT] }
      - { path: /a/one, methods: [PUT] }
      - { path: /b, methods: [PUT] }
`);
  const { rules } = (rule as unknown as { spec: { rules: { path: string }[] } }).spec;
  expect(rules.map(({ path: each }) => each)).toEqual([
    "/a/one",
    "/b",
    "/a/long/{**}",
    "/a/{**}",
    "/*",
  ]);
});

test("events are sent to the namespace that the command names", () => {
  const file = path.join(directory, "config.yaml");
  const text = base.replace("namespace: orders\n", "");
  writeFileSync(file, `${text}subscriptions: [{ source: shop, types: [a] }]\nschemaVersion: v1\n`);
  const [, subscription] = readManifests([file], { namespace: () => "elsewhere" });
  expect(subscription?.object).toMatchObject({
    spec: { sink: "http://shop.elsewhere.svc.cluster.local" },
  });
});

const rule = "apiRules:\n  - service: { host: h }\n    rules:\n      - path: /x\n";
const refused: [string, string, string | RegExp][] = [
  ["a newer schema", `schemaVersion: v7\n${base}`, "schemaVersion v7 is newer"],
  ["an unknown key", `${base}replicas: 3\n`, "replicas is not a known key"],
  [
    "a reference without the name of its key",
    `${base}env: [{ name: A, valueFrom: { secretKeyRef: { name: b } } }]\n`,
    "secretKeyRef needs the key key",
  ],
  ["a missing runtime", "name: a\nsource: { sourceType: inline }\n", "needs the key runtime"],
  ["a missing handler", base.replace("inline", "inline\n  sourcePath: nope"), "does not exist"],
  [
    "an unknown key below",
    `${base}  sourcepath: src\n`,
    /config\.yaml:6: source\.sourcepath is not a/,
  ],
  ["a text for a list", `${base}env: A\n`, /config\.yaml:6: env must be an array, not "A"/],
  ["a text for a subscription", `${base}subscriptions: [x]\n`, "subscriptions.0 must be an object"],
  ["a number for resources", `${base}resource: 5\n`, "resource must be an object, not 5"],
  ["an APIRule without a host", `${base}apiRules: [{ rules: [] }]\n`, "needs the key service"],
  ["a repository without URL", base.replace("inline", "git"), "source.url is missing"],
  [
    "a path that only a regular expression can say",
    `${base}${rule.replace("/x", "/(a|b)")}`,
    "the path /(a|b) is a regular expression",
  ],
  [
    "an access strategy that is not there",
    `${base}${rule}        accessStrategies: [{ handler: oauth2_introspection }]\n`,
    "the access strategy oauth2_introspection cannot be applied",
  ],
  [
    "a token without the URL of its keys",
    `${base}${rule}        accessStrategies: [{ handler: jwt, config: { trustedIssuers: [a] } }]\n`,
    "needs jwksUrls and trustedIssuers",
  ],
];
test.each(refused)("%s is refused in one sentence", (_name, text, words) => {
  expect(() => read(text)).toThrow(words);
});

test.each([
  ["by its name", "sourceHandlerName: ../secret.js"],
  ["by its directory", "sourcePath: .."],
  ["by an absolute path", "sourcePath: /etc\n  sourceHandlerName: hostname"],
  ["by a link", "sourceHandlerName: link.js"],
  ["as what declares its packages", "depsHandlerName: ../secret.js"],
])("a file outside of the directory is refused as source: %s", (_, line) => {
  writeFileSync(path.join(directory, "../secret.js"), "secret");
  writeFileSync(path.join(directory, "../handler.js"), "secret");
  const link = path.join(directory, "link.js");
  rmSync(link, { force: true });
  symlinkSync("../secret.js", link);
  expect(() => read(`${base}  ${line}\n`)).toThrow(/is outside of/);
});
