import { type CorsPolicy } from "@spry/function";
import { describe, expect, test } from "vitest";
import { createCorsDecider } from "./cors.ts";

const allowed = (origin: string) => ({ "access-control-allow-origin": origin, vary: "Origin" });
const refused = { vary: "Origin" };

describe("an origin", () => {
  test.each<
    [what: string, policy: CorsPolicy | undefined, origin: string | undefined, headers: object]
  >([
    ["without a policy", undefined, "https://a", {}],
    ["of a policy without origins", { allowMethods: ["GET"] }, "https://a", {}],
    ["that is not sent", { allowOrigins: [{ exact: "https://a" }] }, undefined, refused],
    ["exact", { allowOrigins: [{ exact: "https://a" }] }, "https://a", allowed("https://a")],
    ["exact, and longer", { allowOrigins: [{ exact: "https://a" }] }, "https://a.evil", refused],
    ["exact, in other letters", { allowOrigins: [{ exact: "https://a" }] }, "https://A", refused],
    ["exact *", { allowOrigins: [{ exact: "*" }] }, "https://a", allowed("https://a")],
    ["prefix", { allowOrigins: [{ prefix: "https://a." }] }, "https://a.b", allowed("https://a.b")],
    ["prefix of another", { allowOrigins: [{ prefix: "https://a." }] }, "http://a.b", refused],
    [
      "expression",
      { allowOrigins: [{ regex: "https://.*\\.example" }] },
      "https://a.example",
      allowed("https://a.example"),
    ],
    [
      "expression, the whole origin",
      { allowOrigins: [{ regex: "https://a" }] },
      "https://a.evil",
      refused,
    ],
    ["expression that is not valid", { allowOrigins: [{ regex: "(" }] }, "(", refused],
    ["any expression", { allowOrigins: [{ regex: ".*" }] }, "null", allowed("null")],
    ["the second", { allowOrigins: [{ exact: "b" }, { exact: "a" }] }, "a", allowed("a")],
  ])("%s", (_, policy, origin, headers) => {
    const request = { method: "GET", origin, requestedMethod: undefined };
    expect(createCorsDecider(policy).decide(request)).toEqual({ kind: "continue", headers });
  });
});

describe("a request", () => {
  const policy: CorsPolicy = {
    allowOrigins: [{ exact: "https://a" }],
    allowMethods: ["GET", "POST"],
    allowHeaders: ["x-a", "x-b"],
    exposeHeaders: ["x-c"],
    allowCredentials: true,
    maxAge: 60,
  };
  const credentials = { "access-control-allow-credentials": "true" };
  const preflight = {
    ...allowed("https://a"),
    ...credentials,
    "access-control-allow-methods": "GET,POST",
    "access-control-allow-headers": "x-a,x-b",
    "access-control-max-age": "60",
  };
  const response = {
    ...allowed("https://a"),
    ...credentials,
    "access-control-expose-headers": "x-c",
  };
  test.each<
    [
      what: string,
      method: string,
      origin: string,
      requested: string | undefined,
      kind: string,
      headers: object,
    ]
  >([
    ["preflight", "OPTIONS", "https://a", "PUT", "preflight", preflight],
    ["OPTIONS that is none", "OPTIONS", "https://a", undefined, "continue", response],
    ["preflight of another origin", "OPTIONS", "https://b", "GET", "continue", refused],
    ["GET", "GET", "https://a", undefined, "continue", response],
    ["GET with a preflight's header", "GET", "https://a", "GET", "continue", response],
  ])("%s", (_, method, origin, requestedMethod, kind, headers) => {
    const request = { method, origin, requestedMethod };
    expect(createCorsDecider(policy).decide(request)).toEqual({ kind, headers });
  });
});
