/** What is refused at admission, through the webhook on a real API server: field and message. */
import { type ApiRuleRule, type ApiRuleSpec } from "@spry/function";
import { type KubeObject } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await TestPlatform.start();
});
afterAll(async () => platform[Symbol.asyncDispose]());

const open: ApiRuleRule = { path: "/*", methods: ["GET"], noAuth: true };
const issuer = "https://id.example";
const jwksUri = "https://id.example/keys";
const authentication = { issuer, jwksUri };

function apply(spec: object): Promise<KubeObject> {
  return platform.apply({
    apiVersion: "gateway.kyma-project.io/v2",
    kind: "APIRule",
    metadata: { name: "dice", namespace: "shop" },
    spec: {
      hosts: ["dice"],
      gateway: "kyma-system/kyma-gateway",
      service: { name: "dice", port: 80 },
      rules: [open],
      ...spec,
    },
  } as KubeObject);
}

const rules = (...list: Partial<ApiRuleRule>[]) => ({
  rules: list.map((each) => ({
    path: "/*",
    methods: ["GET"],
    ...(each.jwt || each.extAuth ? {} : { noAuth: true }),
    ...each,
  })),
});
const jwt = (...authentications: object[]) =>
  rules({ jwt: { authentications } as NonNullable<ApiRuleRule["jwt"]> });
const authorized = (...authorizations: object[]) =>
  rules({ jwt: { authentications: [authentication], authorizations } });

test.each<[string, Partial<ApiRuleSpec>]>([
  ["as it should be", {}],
  [
    "all kinds of paths",
    rules(
      { path: "/a" },
      { path: "/a/{*}" },
      { path: "/a/{**}" },
      { path: "/b/{**}/c" },
      { path: "/" },
      { path: "/*" },
    ),
  ],
  ["one path, by methods", rules({ methods: ["GET"] }, { methods: ["POST"] })],
  [
    "tokens from a header",
    jwt({ ...authentication, fromHeaders: [{ name: "X-Token", prefix: "JwtToken " }] }),
  ],
  ["an issuer that is no URI", jwt({ issuer: "kubernetes/serviceaccount", jwksUri })],
  [
    "scopes and audiences",
    authorized({ requiredScopes: ["a", "b"], audiences: ["c"] }, { audiences: ["d"] }),
  ],
  [
    "origins",
    {
      corsPolicy: {
        allowOrigins: [{ exact: "https://a" }, { prefix: "https://" }, { regex: ".*\\.example" }],
        maxAge: 60,
      },
    },
  ],
  [
    "headers and cookies",
    rules({ request: { headers: { "X-A": "%REQ(X-B)%" }, cookies: { a: "b" } } }),
  ],
])("allowed: %s", async (_, spec) => {
  await expect(apply(spec)).resolves.toBeDefined();
});

test.each<[what: string, spec: object, message: string | RegExp]>([
  ["no hosts", { hosts: [] }, /spec.hosts in body should have at least 1 items/],
  ["no rules", { rules: [] }, "spec.rules: Invalid value: No rules defined"],
  ["a host with a port", { hosts: ["dice:80"] }, /Host must be a lowercase RFC 1123 label/],
  [
    "a host in capitals",
    { hosts: ["Dice.example.com"] },
    /Host must be a lowercase RFC 1123 label/,
  ],
  [
    "a wildcard in the middle",
    { hosts: ["a.*.example.com"] },
    /Host must be a lowercase RFC 1123 label/,
  ],
  ["a wildcard alone", { hosts: ["*"] }, /Host must be a lowercase RFC 1123 label/],
  [
    "a host of 300 characters",
    { hosts: [`${"a.".repeat(150)}example`] },
    /Too long: may not be more than 255/,
  ],
  [
    "a host twice",
    { hosts: ["dice", "dice"] },
    "spec.hosts[1]: Invalid value: Host is listed twice",
  ],
  [
    "a Service's own name",
    { hosts: ["dice.shop.svc.cluster.local"] },
    "spec.hosts[0]: Invalid value: Host is reserved for Services inside the cluster",
  ],
  [
    "a Function's own host",
    { hosts: ["dice.shop.localhost"] },
    /spec.hosts\[0\]: .*Host is reserved for Functions: only one label may precede .localhost/,
  ],
  ["all hosts of Functions", { hosts: ["*.localhost"] }, /Host must be a lowercase RFC 1123 label/],
  ["all hosts of a namespace", { hosts: ["*.shop.localhost"] }, /Host is reserved for Functions/],
  [
    "21 hosts",
    { hosts: Array.from({ length: 21 }, (_, n) => `h${n}`) },
    /spec.hosts: Too many: 21: must have at most 20 items/,
  ],
  [
    "a Gateway without a namespace",
    { gateway: "kyma-gateway" },
    /Gateway must be in the namespace\/name format/,
  ],
  [
    "no Gateway",
    { gateway: undefined },
    "spec.gateway: Invalid value: Either gateway or externalGateway must be specified",
  ],
  [
    "an external Gateway",
    { externalGateway: "a/b" },
    "spec.externalGateway: Invalid value: external gateways are not supported: use gateway",
  ],
  [
    "no Service",
    { service: undefined },
    "spec.rules[0].service: Invalid value: The rule must define a service, because no service is defined on spec level",
  ],
  [
    "a Service in a name that is none",
    { service: { name: "a", namespace: "A/b", port: 80 } },
    /spec.service.namespace in body should match/,
  ],
  ["port 0", { service: { name: "dice", port: 0 } }, /should be greater than or equal to 1/],
  ["a timeout of 3901 s", { timeout: 3901 }, /should be less than or equal to 3900/],
  [
    "no strategy",
    { rules: [{ path: "/*", methods: ["GET"] }] },
    /One of the following fields must be set: noAuth, jwt, extAuth/,
  ],
  ["noAuth: false alone", rules({ noAuth: false }), /One of the following fields must be set/],
  [
    "two strategies",
    rules({ noAuth: true, jwt: { authentications: [authentication] } }),
    /One of the following fields must be set/,
  ],
  [
    "external authorization",
    rules({ extAuth: { authorizers: ["a"] } }),
    "spec.rules[0].extAuth: Invalid value: external authorization is not supported: use jwt, or check the request in the Function",
  ],
  [
    "no methods",
    rules({ methods: [] }),
    /spec.rules\[0\].methods in body should have at least 1 items/,
  ],
  ["an unknown method", rules({ methods: ["FETCH"] }), /Unsupported value: "FETCH"/],
  ["a path without a slash", rules({ path: "a" }), /spec.rules\[0\].path in body should match/],
  [
    "a regular expression as path",
    rules({ path: "/.*" }),
    /spec.rules\[0\].path in body should match/,
  ],
  [
    "an asterisk in a segment",
    rules({ path: "/a*/b" }),
    /spec.rules\[0\].path in body should match/,
  ],
  [
    "{**} twice",
    rules({ path: "/{**}/a/{**}" }),
    "spec.rules[0].path: Invalid value: Only one {**} operator is allowed in the path.",
  ],
  [
    "{*} after {**}",
    rules({ path: "/{**}/a/{*}" }),
    "spec.rules[0].path: Invalid value: The {**} operator must be the last operator in the path.",
  ],
  [
    "a rule that an earlier one hides",
    rules(
      { path: "/anything/{**}", methods: ["POST", "GET"] },
      { path: "/anything/{*}/one", methods: ["POST"] },
    ),
    "spec.rules: Invalid value: Path /anything/{*}/one with method POST conflicts with at least one of the previous rule paths",
  ],
  [
    "a path twice",
    rules({ path: "/a" }, { path: "/a" }),
    "spec.rules: Invalid value: Path /a with method GET conflicts with at least one of the previous rule paths",
  ],
  [
    "everything, and then something",
    rules({ path: "/*" }, { path: "/a" }),
    /Path \/a with method GET conflicts/,
  ],
  [
    "1001 rules",
    rules(...Array.from({ length: 1001 }, (_, n) => ({ path: `/${n}` }))),
    /spec.rules: Too many: 1001/,
  ],
  [
    "no authentication",
    rules({ jwt: {} }),
    "spec.rules[0].jwt.authentications: Invalid value: A JWT config must have at least one authentication",
  ],
  [
    "an empty issuer",
    jwt({ issuer: "", jwksUri }),
    "spec.rules[0].jwt.authentications[0].issuer: Invalid value: value is empty or not a valid uri err=value is empty",
  ],
  [
    "an issuer that is not a URI",
    jwt({ issuer: "://unsecured.or.not.valid.url", jwksUri }),
    /authentications\[0\].issuer: Invalid value: value is empty or not a valid uri err=parse "/,
  ],
  [
    "keys that are not a URL",
    jwt({ issuer, jwksUri: "keys" }),
    /authentications\[0\].jwksUri: Invalid value: value is empty or not a valid uri err=parse "keys": invalid URI for request/,
  ],
  [
    "keys in a file",
    jwt({ issuer, jwksUri: "file:///etc/passwd" }),
    /jwksUri: .*keys are fetched over https or http/,
  ],
  [
    "a password in the URL of keys",
    jwt({ issuer, jwksUri: "https://a:b@id.example" }),
    /must not have a user or a password/,
  ],
  [
    "headers and parameters",
    jwt({ ...authentication, fromHeaders: [{ name: "a" }], fromParams: ["b"] }),
    /fromParams: Invalid value: mixture of multiple fromHeaders and fromParams is not supported/,
  ],
  [
    "two headers",
    jwt({ ...authentication, fromHeaders: [{ name: "a" }, { name: "b" }] }),
    /fromHeaders: Invalid value: multiple fromHeaders are not supported/,
  ],
  [
    "two parameters",
    jwt({ ...authentication, fromParams: ["a", "b"] }),
    /fromParams: Invalid value: multiple fromParams are not supported/,
  ],
  [
    "a header's name with a space",
    jwt({ ...authentication, fromHeaders: [{ name: "a b" }] }),
    /fromHeaders\[0\].name: Invalid value: not a valid header name/,
  ],
  [
    "one issuer in two ways",
    rules(
      { path: "/a", jwt: { authentications: [authentication] } },
      { path: "/b", jwt: { authentications: [{ ...authentication, fromParams: ["t"] }] } },
    ),
    "spec.rules[1].jwt.authentications[0]: Invalid value: multiple jwt configurations that differ for the same issuer",
  ],
  [
    "no authorizations",
    authorized(),
    "spec.rules[0].jwt.authorizations: Invalid value: authorizations defined, but no configuration exists",
  ],
  [
    "no scopes",
    authorized({ requiredScopes: [] }),
    "spec.rules[0].jwt.authorizations[0].requiredScopes: Invalid value: value is empty",
  ],
  [
    "an empty scope",
    authorized({ requiredScopes: ["a", ""] }),
    /requiredScopes: Invalid value: scope value is empty/,
  ],
  [
    "an empty audience",
    authorized({ audiences: [""] }),
    /audiences: Invalid value: audience value is empty/,
  ],
  [
    "an origin in two forms",
    { corsPolicy: { allowOrigins: [{ exact: "a", prefix: "b" }] } },
    "spec.corsPolicy.allowOrigins[0]: Invalid value: an origin is specified with one of exact, prefix, regex",
  ],
  [
    "an origin's regular expression",
    { corsPolicy: { allowOrigins: [{ regex: "(" }] } },
    'spec.corsPolicy.allowOrigins[0].regex: Invalid value: "(" is not a valid regular expression (RE2 syntax)',
  ],
  [
    "a header that splits",
    rules({ request: { headers: { "X-A": "a\r\nX-B: c" } } }),
    "spec.rules[0].request.headers[X-A]: Invalid value: not a valid header value",
  ],
  [
    "a header's length",
    rules({ request: { headers: { "content-length": "1" } } }),
    /headers\[content-length\]: Invalid value: this header is set by the gateway and cannot be changed/,
  ],
  [
    "a cookie that goes on",
    rules({ request: { cookies: { a: "b; c=d" } } }),
    /cookies\[a\]: Invalid value: not a valid cookie value/,
  ],
])("refused: %s", async (_, spec, message) => {
  const refused = expect(apply(spec)).rejects;
  await (typeof message === "string"
    ? refused.toThrow(`APIRule.gateway.kyma-project.io "dice" is invalid: ${message}`)
    : refused.toThrow(message));
});

test("v2alpha1 is checked as v2 is", async () => {
  const rule = {
    apiVersion: "gateway.kyma-project.io/v2alpha1",
    kind: "APIRule",
    metadata: { name: "alpha", namespace: "shop" },
    spec: { hosts: ["alpha"], gateway: "kyma-system/kyma-gateway", rules: [open] },
  };
  await expect(platform.apply(rule)).rejects.toThrow(/spec.rules\[0\].service: Invalid value/);
  const service = { name: "dice", port: 80 };
  const stored = await platform.apply({ ...rule, spec: { ...rule.spec, service } } as KubeObject);
  expect(stored.apiVersion).toBe(rule.apiVersion);
});

describe("v1beta1", () => {
  const older = (spec: object, rule: object = {}) =>
    platform.apply({
      apiVersion: "gateway.kyma-project.io/v1beta1",
      kind: "APIRule",
      metadata: { name: "older", namespace: "shop" },
      spec: {
        host: "older.example.com",
        gateway: "kyma-gateway.kyma-system.svc.cluster.local",
        service: { name: "dice", port: 80 },
        rules: [
          { path: "/.*", methods: ["GET"], accessStrategies: [{ handler: "allow" }], ...rule },
        ],
        ...spec,
      },
    } as KubeObject);

  test.each<[string, object, object, RegExp]>([
    [
      "an expression that is not valid",
      {},
      { path: "/(a" },
      /spec.rules\[0\].path: Invalid value: "\/\(a" is not a valid regular expression/,
    ],
    [
      "no Service",
      { service: undefined },
      {},
      /spec.rules\[0\].service: Invalid value: No service defined with no main service on spec level/,
    ],
    [
      "a Function's host",
      { host: "a.b.localhost" },
      {},
      /spec.host: Invalid value: Host is reserved for Functions/,
    ],
    [
      "a Gateway of too many parts",
      { gateway: "a.b.c.d.e.f" },
      {},
      /spec.gateway: Invalid value: Gateway must be in the namespace\/name format/,
    ],
    [
      "an issuer",
      {},
      {
        accessStrategies: [
          { handler: "jwt", config: { authentications: [{ issuer: "", jwksUri }] } },
        ],
      },
      /accessStrategies\[0\].config.authentications\[0\].issuer: Invalid value/,
    ],
  ])("refused: %s", async (_, spec, rule, message) => {
    await expect(older(spec, rule)).rejects.toThrow(message);
  });
});
