import { type JwtAuthorization } from "@spry/function";
import { describe, expect, test } from "vitest";
import { isAuthorized } from "./authorize.ts";
import { requestChanges } from "./request-changes.ts";
import { tokensFor } from "./token-source.ts";

const read: JwtAuthorization = { requiredScopes: ["read"] };
const both: JwtAuthorization = { requiredScopes: ["read", "write"] };

test.each<[what: string, claims: object, authorizations: JwtAuthorization[], isEnough: boolean]>([
  ["no authorizations", {}, [], true],
  ["an empty authorization", {}, [{}], true],
  ["scp, a text", { scp: "read" }, [read], true],
  ["scp, a list", { scp: ["read"] }, [read], true],
  ["scope, a text of several", { scope: "write read" }, [both], true],
  ["scopes, a list", { scopes: ["read", "write"] }, [both], true],
  ["one of two scopes", { scope: "read" }, [both], false],
  ["scopes in two claims", { scp: "read", scope: "write" }, [both], false],
  ["a longer scope", { scope: "readable" }, [read], false],
  ["a scope in other letters", { scope: "Read" }, [read], false],
  ["no scope", {}, [read], false],
  ["scopes of another type", { scope: { read: true } }, [read], false],
  ["a list of other types", { scope: [1, null, ["read"]] }, [read], false],
  ["a number", { scope: 1 }, [{ requiredScopes: ["1"] }], false],
  ["an audience", { aud: "a" }, [{ audiences: ["a"] }], true],
  ["an audience of several", { aud: ["a", "b"] }, [{ audiences: ["b"] }], true],
  ["all audiences", { aud: ["a", "b"] }, [{ audiences: ["a", "b"] }], true],
  [
    "a name with spaces, one of which is an audience",
    { aud: "x a" },
    [{ audiences: ["a"] }],
    false,
  ],
  ["one of two audiences", { aud: "a" }, [{ audiences: ["a", "b"] }], false],
  ["scope and audience", { aud: "a", scope: "read" }, [{ ...read, audiences: ["a"] }], true],
  ["scope without audience", { scope: "read" }, [{ ...read, audiences: ["a"] }], false],
  ["the second authorization", { aud: "b" }, [{ audiences: ["a"] }, { audiences: ["b"] }], true],
  [
    "each a half",
    { aud: "a", scope: "read" },
    [
      { ...read, audiences: ["b"] },
      { requiredScopes: ["x"], audiences: ["a"] },
    ],
    false,
  ],
  ["any value", { scope: "x" }, [{ requiredScopes: ["*"] }], true],
  ["any value of none", { scope: "" }, [{ requiredScopes: ["*"] }], false],
  ["a beginning", { scope: "read:all" }, [{ requiredScopes: ["read:*"] }], true],
  ["an end", { scope: "all:read" }, [{ requiredScopes: ["*:read"] }], true],
  ["a claim of every object", {}, [{ requiredScopes: ["function"] }], false],
])("%s", (_, claims, authorizations, isEnough) => {
  expect(isAuthorized(claims as Record<string, unknown>, authorizations)).toBe(isEnough);
});

describe("a token is taken from", () => {
  const issuer = { issuer: "i", jwksUri: "k" };
  const token = "header.payload.signature";
  test.each<
    [
      what: string,
      where: object,
      headers: Record<string, string>,
      query: string,
      found: string | undefined,
    ]
  >([
    ["the Authorization header", {}, { authorization: `Bearer ${token}` }, "", token],
    ["it in small letters", {}, { authorization: `bearer ${token}` }, "", token],
    ["not of another scheme", {}, { authorization: `Basic ${token}` }, "", undefined],
    ["the parameter access_token", {}, {}, `a=b&access_token=${token}`, token],
    ["nowhere", {}, {}, "", undefined],
    ["a header", { fromHeaders: [{ name: "X-Token" }] }, { "x-token": token }, "", token],
    [
      "a header, by the default prefix",
      { fromHeaders: [{ name: "X-Token" }] },
      { "x-token": `Bearer ${token}` },
      "",
      token,
    ],
    [
      "a header with a prefix",
      { fromHeaders: [{ name: "X-Token", prefix: "JwtToken " }] },
      { "x-token": `JwtToken ${token}` },
      "",
      token,
    ],
    [
      "a prefix without its space",
      { fromHeaders: [{ name: "X-Token", prefix: "JwtToken" }] },
      { "x-token": `JwtToken ${token}` },
      "",
      token,
    ],
    [
      "not without the prefix",
      { fromHeaders: [{ name: "X-Token", prefix: "JwtToken" }] },
      { "x-token": token },
      "",
      undefined,
    ],
    [
      "not Authorization, where a header is named",
      { fromHeaders: [{ name: "X-Token" }] },
      { authorization: `Bearer ${token}` },
      "",
      undefined,
    ],
    ["a parameter", { fromParams: ["t"] }, {}, `t=${token}`, token],
    [
      "not access_token, where a parameter is named",
      { fromParams: ["t"] },
      {},
      `access_token=${token}`,
      undefined,
    ],
    ["not what is too long", {}, { authorization: `Bearer ${"a".repeat(20_000)}` }, "", ""],
  ])("%s", (_, where, headers, query, found) => {
    const request = { header: (name: string) => headers[name], query };
    const tokens = tokensFor({ ...issuer, ...where }, request).map(({ text }) => text);
    expect(tokens).toEqual(found === undefined ? [] : [found]);
  });

  test.each<[string, object, Record<string, string>, string, string[]]>([
    ["header and parameter", {}, { authorization: "Bearer a" }, "access_token=b", ["a", "b"]],
    ["the same one twice", {}, { authorization: "Bearer a" }, "access_token=a", ["a", "a"]],
    ["one parameter twice", {}, {}, "access_token=a&access_token=b", ["a, b"]],
    ["two parameters", { fromParams: ["x", "y"] }, {}, "y=b&x=a", ["a", "b"]],
    [
      "one that is too long",
      {},
      { authorization: "Bearer a" },
      `access_token=${"b".repeat(20_000)}`,
      ["a", ""],
    ],
  ])("each of several: %s", (_, where, headers, query, found) => {
    const request = { header: (name: string) => headers[name], query };
    expect(tokensFor({ ...issuer, ...where }, request).map(({ text }) => text)).toEqual(found);
  });
});

test("a rule's headers and cookies, with values of the request's own headers", () => {
  const header = (name: string) => ({ authorization: "Bearer x" })[name];
  const requestHeaders = {
    "X-Auth": "%REQ(Authorization)%",
    "X-None": "<%REQ(X-B)%>",
    "X-P": "5%%",
    "X-C": "%OTHER%",
  };
  expect(requestChanges({ requestHeaders, requestCookies: { a: "b", c: "d" } }, header)).toEqual({
    "x-auth": "Bearer x",
    "x-none": "<>",
    "x-p": "5%",
    "x-c": "%OTHER%",
    cookie: "a=b; c=d",
  });
});
