/** What is served under which host, and which host belongs to whom: pure, from objects. */
import { type ApiRule, type ApiRuleRule, type IstioGateway } from "@spry/function";
import { type Service } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { convertApiRule } from "../conversion/convert.ts";
import { HostTable } from "./host-table.ts";
import { routesOf } from "./routes-of.ts";

let clock = 0;
function rule(name: string, spec: Partial<ApiRule["spec"]> = {}, namespace = "shop"): ApiRule {
  const second = String(clock++ % 60).padStart(2, "0");
  return {
    apiVersion: "gateway.kyma-project.io/v2",
    kind: "APIRule",
    metadata: {
      name,
      namespace,
      uid: `u-${name}`,
      creationTimestamp: `2026-01-01T00:00:${second}Z`,
    },
    spec: {
      hosts: [name],
      gateway: "kyma-system/kyma-gateway",
      service: { name: "dice", port: 80 },
      rules: [{ path: "/*", methods: ["GET"], noAuth: true }],
      ...spec,
    },
  };
}

const service = (namespace: string, name: string, ...ports: number[]): Service => ({
  metadata: { name, namespace },
  spec: { ports: ports.map((port) => ({ port })) },
});
const services = [service("shop", "dice", 80), service("other", "dice", 80)];
const gateway = (
  name: string,
  servers: NonNullable<IstioGateway["spec"]>["servers"],
): IstioGateway => ({
  metadata: { name, namespace: "kyma-system" },
  spec: { servers: servers ?? [] },
});
const secured = { number: 443, name: "https", protocol: "HTTPS" };
const plain = { number: 80, name: "http", protocol: "HTTP" };
const kyma = gateway("kyma-gateway", [
  { port: secured, hosts: ["*.example.com"], tls: { mode: "SIMPLE", credentialName: "tls" } },
  { port: plain, hosts: ["*.example.com"], tls: { httpsRedirect: true } },
]);
const own = { ownCertificates: true };

describe("routes", () => {
  test("have everything that a request needs", () => {
    const rules: ApiRuleRule[] = [
      {
        path: "/private",
        methods: ["GET"],
        jwt: { authentications: [{ issuer: "i", jwksUri: "https://k" }] },
        timeout: 5,
        service: { name: "other", port: 8080 },
      },
      {
        path: "/*",
        methods: ["GET", "POST"],
        noAuth: true,
        request: { headers: { "X-A": "b" }, cookies: { c: "d" } },
      },
    ];
    const corsPolicy = { allowOrigins: [{ exact: "https://a" }] };
    expect(
      routesOf([rule("dice", { rules, timeout: 7, corsPolicy })], services, [kyma], own),
    ).toEqual([
      {
        host: "dice.example.com",
        apiRule: "shop/dice",
        certificate: { kind: "collected", name: "kyma-system.tls" },
        plainHttp: "redirect",
        cors: corsPolicy,
        rules: [
          {
            path: { kind: "template", template: "/private" },
            methods: ["GET"],
            authentication: {
              kind: "jwt",
              authentications: [{ issuer: "i", jwksUri: "https://k" }],
              authorizations: [],
            },
            target: { namespace: "shop", name: "other", port: 8080, exists: false },
            timeoutMs: 5_000,
            requestHeaders: {},
            requestCookies: {},
          },
          {
            path: { kind: "template", template: "/{**}" },
            methods: ["GET", "POST"],
            authentication: { kind: "none" },
            target: { namespace: "shop", name: "dice", port: 80, exists: true },
            timeoutMs: 7_000,
            requestHeaders: { "X-A": "b" },
            requestCookies: { c: "d" },
          },
        ],
      },
    ]);
  });

  test("of v1beta1 have its expressions and its CORS policy", () => {
    const older = {
      ...rule("older"),
      apiVersion: "gateway.kyma-project.io/v1beta1",
      spec: {
        host: "Older.example.com",
        gateway: "kyma-gateway.kyma-system",
        service: { name: "dice", port: 80 },
        rules: [{ path: "/a|/b", methods: ["GET"], accessStrategies: [{ handler: "noop" }] }],
      },
    };
    const converted = convertApiRule(older, "gateway.kyma-project.io/v2") as ApiRule;
    expect(routesOf([converted], services, [kyma], own)).toMatchObject([
      {
        host: "older.example.com",
        cors: { allowOrigins: [{ regex: ".*" }] },
        rules: [
          {
            path: { kind: "regex", regex: "/a|/b" },
            authentication: { kind: "none" },
            timeoutMs: 180_000,
          },
        ],
      },
    ]);
  });

  test("that a change has left as they are stay the same objects, and no others", () => {
    const [a, b, c] = [rule("a"), rule("b"), rule("c", { service: { name: "late", port: 80 } })];
    const routes = (
      more: { rules?: ApiRule[]; services?: Service[]; gateway?: IstioGateway } = {},
    ) => routesOf(more.rules ?? [a, b, c], more.services ?? services, [more.gateway ?? kyma], own);
    const same = (more: Parameters<typeof routes>[0]) => {
      const before = routes();
      const after = routes(more);
      return before.map((each) => after.includes(each));
    };
    expect(same({})).toEqual([true, true, true]);
    expect(same({ services: [...services, service("shop", "late", 80)] })).toEqual([
      true,
      true,
      false,
    ]);
    expect(same({ rules: [a, { ...b, spec: { ...b.spec, timeout: 1 } }, c] })).toEqual([
      true,
      false,
      true,
    ]);
    expect(same({ rules: [a, c] })).toEqual([true, false, true]);
    expect(same({ gateway: { ...kyma } })).toEqual([false, false, false]);
  });

  const first = rule("a1", { hosts: ["contested"] });
  const second = rule("a2", { hosts: ["contested.example.com", "free"] }, "other");
  const twin = (uid: string, namespace: string) => {
    const one = rule(uid, { hosts: ["twins"] }, namespace);
    return {
      ...one,
      metadata: { ...one.metadata, uid, creationTimestamp: "2026-02-01T00:00:00Z" },
    };
  };
  const deleted = (one: ApiRule) => ({
    ...one,
    metadata: { ...one.metadata, deletionTimestamp: "2026-02-01T00:00:00Z" },
  });
  test.each<[what: string, rules: ApiRule[], hosts: string[]]>([
    [
      "the first has the host",
      [first, second],
      ["contested.example.com a1", "free.example.com a2"],
    ],
    ["whatever the order", [second, first], ["free.example.com a2", "contested.example.com a1"]],
    [
      "of one second, the smaller uid",
      [twin("t2", "shop"), twin("t1", "other")],
      ["twins.example.com t1"],
    ],
    [
      "one that is deleted has none",
      [deleted(first), second],
      ["contested.example.com a2", "free.example.com a2"],
    ],
    ["a Gateway that does not exist", [rule("b", { gateway: "a/b" })], []],
    ["a host that the Gateway does not serve", [rule("c", { hosts: ["c.example.org"] })], []],
    ["a rule that is not valid serves nothing", [rule("d", { rules: [] })], []],
    [
      "but keeps its host",
      [rule("e", { rules: [], hosts: ["e"] }), rule("f", { hosts: ["e"] })],
      [],
    ],
    ["a Function's host", [rule("g", { hosts: ["g.shop.localhost"] })], []],
  ])("%s", (_, rules, hosts) => {
    const routes = routesOf(rules, services, [kyma], own);
    expect(routes.map(({ host, apiRule }) => `${host} ${apiRule.split("/")[1]}`)).toEqual(hosts);
  });

  const only = (servers: NonNullable<IstioGateway["spec"]>["servers"], ownCertificates = true) => {
    const [found] = routesOf(
      [rule("dice", { hosts: ["dice.example.com"] })],
      services,
      [gateway("kyma-gateway", servers)],
      { ownCertificates },
    );
    return found && { certificate: found.certificate, plainHttp: found.plainHttp };
  };
  const hosts = ["*.example.com"];
  const both = { certificate: { kind: "own" }, plainHttp: "refuse" };
  test.each<[what: string, result: object | undefined, expected: object | undefined]>([
    ["a certificate of our own", only([{ port: secured, hosts }]), both],
    [
      "none of our own",
      only([{ port: secured, hosts }], false),
      { ...both, certificate: { kind: "missing" } },
    ],
    [
      "plain HTTP alone",
      only([{ port: plain, hosts }]),
      { certificate: { kind: "missing" }, plainHttp: "serve" },
    ],
    ["every host", only([{ port: secured, hosts: ["*"] }]), both],
    ["this host alone", only([{ port: secured, hosts: ["dice.example.com"] }]), both],
    ["another host", only([{ port: secured, hosts: ["dice.example.org"] }]), undefined],
    ["the domain itself", only([{ port: secured, hosts: ["*.dice.example.com"] }]), undefined],
    ["hosts of this namespace", only([{ port: secured, hosts: ["shop/*.example.com"] }]), both],
    ["hosts of all namespaces", only([{ port: secured, hosts: ["*/*.example.com"] }]), both],
    [
      "hosts of another namespace",
      only([{ port: secured, hosts: ["other/*.example.com"] }]),
      undefined,
    ],
    [
      "hosts of the Gateway's own namespace",
      only([{ port: secured, hosts: ["./*.example.com"] }]),
      undefined,
    ],
    [
      "clients' certificates",
      only([{ port: secured, hosts, tls: { mode: "MUTUAL" } }]),
      { ...both, certificate: { kind: "missing" } },
    ],
    [
      "the most exact server",
      only([
        { port: secured, hosts, tls: { credentialName: "a" } },
        { port: secured, hosts: ["dice.example.com"], tls: { credentialName: "b" } },
      ]),
      { ...both, certificate: { kind: "collected", name: "kyma-system.b" } },
    ],
  ])("a Gateway with %s", (_, result, expected) => expect(result).toEqual(expected));

  test.each<[what: string, spec: Service["spec"], exists: boolean]>([
    ["its port", { ports: [{ port: 80 }] }, true],
    ["another port", { ports: [{ port: 81 }] }, false],
    [
      "a name elsewhere",
      { type: "ExternalName", externalName: "169.254.169.254", ports: [{ port: 80 }] },
      false,
    ],
  ])("a Service with %s", (_, spec, exists) => {
    const found = { metadata: { name: "dice", namespace: "shop" }, ...(spec ? { spec } : {}) };
    const [host] = routesOf([rule("dice")], [found], [kyma], own);
    expect(host!.rules[0]!.target.exists).toBe(exists);
  });
});

describe("a table of hosts", () => {
  const names = ["a.example.com", "*.example.com", "*.b.example.com", "*.com"];
  const table = new HostTable(
    names.map((host) => ({
      host,
      apiRule: "a/b",
      certificate: { kind: "own" },
      plainHttp: "serve",
      rules: [],
    })),
  );
  test.each<[name: string, host: string | undefined]>([
    ["a.example.com", "a.example.com"],
    ["x.example.com", "*.example.com"],
    ["x.y.example.com", "*.example.com"],
    ["x.b.example.com", "*.b.example.com"],
    ["b.example.com", "*.example.com"],
    ["example.com", "*.com"],
    ["com", undefined],
    ["example.org", undefined],
    ["", undefined],
  ])("%s is %s", (name, host) => expect(table.find(name)?.host.host).toBe(host));
});
