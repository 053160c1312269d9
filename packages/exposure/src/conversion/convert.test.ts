import { type ApiRule } from "@spry/function";
import { describe, expect, test } from "vitest";
import { exposureWebhooks } from "../admission.ts";
import { convertApiRule, v1beta1SpecOf } from "./convert.ts";
import { gatewayName } from "./gateway-name.ts";
import { authenticationOfV1beta1, pathOfV1beta1 } from "./v1beta1-rule.ts";
import { type ApiRuleV1beta1, type ApiRuleV1beta1Spec } from "./v1beta1.ts";

const group = "gateway.kyma-project.io";

test.each([
  ["kyma-system/kyma-gateway", "kyma-system/kyma-gateway"],
  ["kyma-gateway.kyma-system.svc.cluster.local", "kyma-system/kyma-gateway"],
  ["kyma-gateway.kyma-system.svc.cluster", "kyma-system/kyma-gateway"],
  ["kyma-gateway.kyma-system.svc", "kyma-system/kyma-gateway"],
  ["kyma-gateway.kyma-system", "kyma-system/kyma-gateway"],
  ["kyma-gateway", "shop/kyma-gateway"],
  ["a.b.c", undefined],
  ["a_b/c", undefined],
])("the Gateway %s of v1beta1 is %s", (reference, name) => {
  expect(gatewayName(reference, "shop")).toBe(name);
});

test.each([
  ["/.*", "template", "/{**}"],
  ["/*", "template", "/{**}"],
  ["/headers", "template", "/headers"],
  ["/favicon.ico", "template", "/favicon.ico"],
  ["/a/.*", "template", "/a/{**}"],
  ["/a/{*}/b", "template", "/a/{*}/b"],
  ["/foo(.*)", "regex", "/foo(.*)"],
  ["/headers|/ip", "regex", "/headers|/ip"],
  ["/(ab)", "regex", "/(ab)"],
  ["/a+", "regex", "/a+"],
  ["/[a-z]", "regex", "/[a-z]"],
  ["/a.*/b", "regex", "/a.*/b"],
  ["/a/.*/.*", "regex", "/a/.*/.*"],
])("the path %s of v1beta1 is a %s: %s", (path, kind, text) => {
  const pattern = pathOfV1beta1(path);
  expect(pattern.kind).toBe(kind);
  expect(pattern.kind === "regex" ? pattern.regex : pattern.template).toBe(text);
});

describe("access strategies of v1beta1", () => {
  const istio = {
    authentications: [{ issuer: "https://i", jwksUri: "https://i/k" }],
    authorizations: [{ requiredScopes: ["a"] }],
  };
  const ory = { trusted_issuers: ["https://i"], jwks_urls: ["https://i/k"] };
  const jwt = { kind: "jwt", authentications: istio.authentications };
  test.each<[string, { handler: string; config?: unknown }[], object]>([
    ["allow", [{ handler: "allow" }], { kind: "none" }],
    ["noop", [{ handler: "noop" }], { kind: "none" }],
    ["no_auth", [{ handler: "no_auth" }], { kind: "none" }],
    [
      "Istio's jwt",
      [{ handler: "jwt", config: istio }],
      { ...jwt, authorizations: istio.authorizations },
    ],
    ["Ory's jwt", [{ handler: "jwt", config: ory }], { ...jwt, authorizations: [] }],
    [
      "Ory's scopes",
      [{ handler: "jwt", config: { ...ory, required_scope: ["a"], target_audience: ["b"] } }],
      { ...jwt, authorizations: [{ requiredScopes: ["a"], audiences: ["b"] }] },
    ],
    [
      "two issuers",
      [{ handler: "jwt", config: { ...ory, trusted_issuers: ["a", "b"] } }],
      {
        kind: "jwt",
        authentications: ["a", "b"].map((issuer) => ({ issuer, jwksUri: "https://i/k" })),
        withoutToken: 401,
      },
    ],
    [
      "keys without an issuer",
      [{ handler: "jwt", config: { jwks_urls: ory.jwks_urls } }],
      {
        kind: "jwt",
        authentications: [{ issuer: undefined, jwksUri: "https://i/k" }],
        withoutToken: 401,
      },
    ],
    [
      "Istio's jwt without an issuer",
      [{ handler: "jwt", config: { authentications: [{ jwksUri: "https://i/k" }] } }],
      { kind: "refused" },
    ],
    [
      "Istio's jwt with a text for a list",
      [{ handler: "jwt", config: { authentications: "https://i" } }],
      { kind: "refused" },
    ],
    [
      "keys that are a text",
      [{ handler: "jwt", config: { jwks_urls: "https://i/k" } }],
      { kind: "refused" },
    ],
    ["jwt without configuration", [{ handler: "jwt" }], { kind: "refused" }],
    ["allow and jwt", [{ handler: "allow" }, { handler: "jwt", config: ory }], jwt],
    ["introspection", [{ handler: "oauth2_introspection" }], { kind: "refused" }],
    [
      "allow and introspection",
      [{ handler: "allow" }, { handler: "oauth2_introspection" }],
      { kind: "refused" },
    ],
    ["what does not exist", [{ handler: "constructor" }], { kind: "refused" }],
  ])("%s", (_, accessStrategies, expected) => {
    const rule = { path: "/", methods: ["GET"], accessStrategies };
    expect(authenticationOfV1beta1(rule)).toMatchObject(expected);
  });
});

const older = (spec: Partial<ApiRuleV1beta1Spec> = {}): ApiRuleV1beta1 => ({
  apiVersion: `${group}/v1beta1`,
  kind: "APIRule",
  metadata: { name: "dice", namespace: "shop" },
  spec: {
    host: "dice",
    gateway: "kyma-gateway.kyma-system",
    service: { name: "dice", port: 80 },
    corsPolicy: { allowOrigins: [{ exact: "a" }], maxAge: "1h30m0.5s" },
    timeout: 10,
    rules: [{ path: "/.*", methods: ["GET"], accessStrategies: [{ handler: "allow" }] }],
    ...spec,
  },
  status: {
    APIRuleStatus: { code: "OK", desc: "x" },
    lastProcessedTime: "2026-01-01T00:00:00Z",
    observedGeneration: 2,
  },
});

test("v1beta1 becomes v2, and v1beta1 again", () => {
  const converted = convertApiRule(older(), `${group}/v2`) as ApiRule;
  expect(converted).toMatchObject({
    apiVersion: `${group}/v2`,
    spec: {
      hosts: ["dice"],
      gateway: "kyma-system/kyma-gateway",
      corsPolicy: { allowOrigins: [{ exact: "a" }], maxAge: 5_400 },
      rules: [{ path: "/*", methods: ["GET"], noAuth: true }],
      timeout: 10,
    },
    status: { state: "Ready", description: "x", lastProcessedTime: "2026-01-01T00:00:00Z" },
  });
  const back = convertApiRule(converted, `${group}/v1beta1`) as ApiRuleV1beta1;
  expect(back.spec).toEqual(older().spec);
  expect(back.status).toEqual(older().status);
});

test("a rule that v2 cannot express leaves v2 without rules, and v1beta1 as it was", () => {
  const rules = [{ path: "/a|/b", methods: ["GET"], accessStrategies: [{ handler: "allow" }] }];
  const converted = convertApiRule(older({ rules }), `${group}/v2`) as ApiRule;
  expect(converted.spec.rules).toEqual([]);
  expect((convertApiRule(converted, `${group}/v1beta1`) as ApiRuleV1beta1).spec?.rules).toEqual(
    rules,
  );
});

test("what has been changed as v2 is v2's, whatever an annotation says", () => {
  const converted = convertApiRule(older(), `${group}/v2`) as ApiRule;
  expect(v1beta1SpecOf(converted)).toEqual(older().spec);
  const changed = { ...converted, spec: { ...converted.spec, timeout: 20 } };
  expect(v1beta1SpecOf(changed)).toBeUndefined();
  expect((convertApiRule(changed, `${group}/v1beta1`) as ApiRuleV1beta1).spec).toEqual({});
});

describe("an annotation that no API server has checked", () => {
  const rule = (spec: object) => {
    const annotations = {
      "gateway.kyma-project.io/original-version": "v1beta1",
      "gateway.kyma-project.io/v1beta1-spec":
        typeof spec === "string" ? spec : JSON.stringify(spec),
    };
    // What a rule that v2 cannot express leaves, whatever the rule is.
    return { metadata: { name: "a", namespace: "b", annotations }, spec: { rules: [] } };
  };
  const inexpressible = {
    path: "/a|/b",
    methods: ["GET"],
    accessStrategies: [{ handler: "allow" }],
  };
  const withRule = (change: object) => ({ rules: [{ ...inexpressible, ...change }] });

  test("is read if it has the types of its schema", () => {
    expect(v1beta1SpecOf(rule(withRule({})))).toEqual(withRule({}));
  });

  test.each<[unknown]>([
    ["{"],
    ["[]"],
    ["null"],
    ['"x"'],
    [{ rules: 7 }],
    [{ rules: [null] }],
    [withRule({ path: 1 })],
    [withRule({ methods: 5 })],
    [withRule({ methods: [5] })],
    [withRule({ accessStrategies: "allow" })],
    [withRule({ accessStrategies: [7] })],
    [withRule({ mutators: {} })],
    [withRule({ service: { name: {} } })],
    [withRule({ timeout: "1" })],
    [{ ...withRule({}), corsPolicy: { allowOrigins: "*" } }],
    [{ ...withRule({}), timeout: [] }],
  ])("and not otherwise: %j", (annotation) => {
    expect(v1beta1SpecOf(rule(annotation as object))).toBeUndefined();
  });
});

test("v2 and v2alpha1 differ in nothing", () => {
  const rule = {
    apiVersion: `${group}/v2`,
    kind: "APIRule",
    metadata: { name: "a" },
    spec: { hosts: ["a"] },
  };
  const alpha = convertApiRule(rule, `${group}/v2alpha1`);
  expect(alpha).toEqual({ ...rule, apiVersion: `${group}/v2alpha1` });
  expect(convertApiRule(alpha, `${group}/v2`)).toEqual(rule);
});

describe("the webhook", () => {
  const convert = async (body: string) => {
    const request = new Request("https://x/convert/apirules", { method: "POST", body });
    const answer = await exposureWebhooks.answers(request)!;
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  };
  test.each(["{}", "null", "no JSON", '{"request":{"uid":"1"}}'])(
    "%s is not a review",
    async (body) => {
      expect((await convert(body)).status).toBe(400);
    },
  );
  test("names the object that it cannot convert", async () => {
    const objects = [{ ...older(), apiVersion: `${group}/v1alpha1` }];
    const { body } = await convert(
      JSON.stringify({ request: { uid: "1", desiredAPIVersion: `${group}/v2`, objects } }),
    );
    expect(body).toMatchObject({
      response: {
        uid: "1",
        result: {
          status: "Failure",
          message: `APIRule shop/dice: converting an APIRule from ${group}/v1alpha1 to ${group}/v2 is not supported`,
        },
      },
    });
  });
});
