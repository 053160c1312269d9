import { createServer, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { type ApiRuleSpec } from "@spry/function";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hostUrls } from "../expose/host-urls.ts";
import { apiRuleFor, type ExposeOptions } from "./expose.ts";

let server: Server;
let issuer: string;
beforeAll(async () => {
  server = createServer((request, response) => {
    const documents: Record<string, object | string> = {
      "/": { issuer, jwks_uri: `${issuer}/keys` },
      "/other": { issuer: "https://other.example" },
      "/none": { issuer: `${issuer}/none` },
      "/html": "<html>",
    };
    const path = (request.url ?? "").replace("/.well-known/openid-configuration", "") || "/";
    const found = documents[path];
    response.statusCode = found ? 200 : 404;
    response.end(typeof found === "string" ? found : JSON.stringify(found));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

const defaults = { gateway: "kyma-system/kyma-gateway", path: "/*" };
const specOf = async (options: Partial<ExposeOptions>): Promise<ApiRuleSpec> =>
  (await apiRuleFor("dice", "shop", { ...defaults, ...options })).spec;
const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const jwksUri = "https://k.example/keys";

describe("the APIRule for", () => {
  test.each<[options: Partial<ExposeOptions>, spec: ApiRuleSpec]>([
    [{}, { rules: [{ path: "/*", methods, noAuth: true }] }],
    [{ host: ["a", "b.example"] }, { hosts: ["a", "b.example"] }],
    [
      { path: "/a/{**}", method: ["get"] },
      { rules: [{ path: "/a/{**}", methods: ["GET"], noAuth: true }] },
    ],
    [{ requestTimeout: 5 }, { timeout: 5 }],
    [
      { jwtIssuer: "https://i.example", jwksUri },
      {
        rules: [
          {
            path: "/*",
            methods,
            jwt: { authentications: [{ issuer: "https://i.example", jwksUri }] },
          },
        ],
      },
    ],
    [
      { jwtIssuer: "i", jwksUri, audience: ["a"], scope: ["r", "w"] },
      {
        rules: [
          {
            path: "/*",
            methods,
            jwt: {
              authentications: [{ issuer: "i", jwksUri }],
              authorizations: [{ requiredScopes: ["r", "w"], audiences: ["a"] }],
            },
          },
        ],
      },
    ],
    [
      { cors: ["https://a", "*"], method: ["GET"] },
      {
        corsPolicy: {
          allowOrigins: [{ exact: "https://a" }, { regex: ".*" }],
          allowMethods: ["GET", "OPTIONS"],
          allowHeaders: ["Authorization", "Content-Type"],
        },
        rules: [{ path: "/*", methods: ["GET", "OPTIONS"], noAuth: true }],
      },
    ],
  ])("%j", async (options, spec) => {
    expect(await specOf(options)).toEqual({
      hosts: ["dice"],
      gateway: "kyma-system/kyma-gateway",
      service: { name: "dice", port: 80 },
      rules: [{ path: "/*", methods, noAuth: true }],
      ...spec,
    });
  });

  test("an issuer, whose keys are found by its metadata", async () => {
    const { rules } = await specOf({ jwtIssuer: issuer });
    expect(rules![0]!.jwt!.authentications).toEqual([{ issuer, jwksUri: `${issuer}/keys` }]);
  });

  test.each<[what: string, options: () => Partial<ExposeOptions>, message: RegExp]>([
    [
      "an audience without an issuer",
      () => ({ audience: ["a"] }),
      /--audience has no effect without an issuer/,
    ],
    [
      "a scope without an issuer",
      () => ({ scope: ["a"] }),
      /--scope has no effect without an issuer/,
    ],
    [
      "an issuer that is not a URL",
      () => ({ jwtIssuer: "me" }),
      /me is not a URL: its keys cannot be looked up/,
    ],
    [
      "an issuer without metadata",
      () => ({ jwtIssuer: `${issuer}/nowhere` }),
      /answered with status 404/,
    ],
    [
      "metadata of another issuer",
      () => ({ jwtIssuer: `${issuer}/other` }),
      /is the metadata of another issuer: https:\/\/other.example/,
    ],
    ["metadata without keys", () => ({ jwtIssuer: `${issuer}/none` }), /has no jwks_uri/],
    ["a page", () => ({ jwtIssuer: `${issuer}/html` }), /is not JSON/],
  ])("refused: %s", async (_, options, message) => {
    await expect(specOf(options())).rejects.toThrow(message);
  });
});

test("the URLs of hosts", () => {
  const gateway = {
    metadata: { name: "g" },
    spec: { servers: [{ hosts: ["*.localhost"] }, { hosts: ["*.localhost"] }] },
  };
  const hosts = ["dice", "dice.example.com"];
  expect(hostUrls(hosts, gateway, undefined)).toEqual([
    "https://dice.localhost/",
    "https://dice.example.com/",
  ]);
  expect(hostUrls(["dice"], gateway, new URL("https://localhost:8443"))).toEqual([
    "https://dice.localhost:8443/",
  ]);
});
