/** What the status says, on a real API server with our webhooks and the reconciler. */
import { certificatesSecretName, type ApiRule, apiRules } from "@spry/function";
import { resources } from "@spry/kube";
import { certificateFor } from "@spry/test-kit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemNamespace, TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await TestPlatform.start();
  await platform.gateway("kyma-system/kyma-gateway", "*.example.com");
  await platform.service("shop", "dice", 80);
  await platform.service("other", "dice", 80);
});
afterAll(async () => {
  const { troubles } = platform;
  await platform[Symbol.asyncDispose]();
  expect(troubles).toEqual([]);
});

const ready = "Ready: Reconciled successfully";

function rule(name: string, spec: Partial<ApiRule["spec"]> = {}, namespace = "shop") {
  return {
    apiVersion: "gateway.kyma-project.io/v2",
    kind: "APIRule",
    metadata: { name, namespace },
    spec: {
      hosts: [name],
      gateway: "kyma-system/kyma-gateway",
      service: { name: "dice", port: 80 },
      rules: [{ path: "/*", methods: ["GET"], noAuth: true }],
      ...spec,
    },
  };
}

const statusOf = (name: string, namespace = "shop") =>
  expect.poll(() => platform.statusOf(namespace, name));

describe("what the status says of", () => {
  const jwt = {
    authentications: [{ issuer: "https://id.example", jwksUri: "https://id.example/k" }],
  };
  test.each<[what: string, name: string, spec: Partial<ApiRule["spec"]>, status: string]>([
    ["a rule that is served", "good", {}, ready],
    ["several hosts", "several", { hosts: ["a1", "a2.example.com", "*.a3.example.com"] }, ready],
    ["tokens", "tokens", { rules: [{ path: "/*", methods: ["GET"], jwt }] }, ready],
    [
      "a Service that does not exist",
      "no-service",
      { service: { name: "none", port: 80 } },
      "Error: Validation errors: Attribute '.spec.service': Service shop/none does not exist",
    ],
    [
      "a port that the Service does not have",
      "no-port",
      { service: { name: "dice", port: 81 } },
      "Error: Validation errors: Attribute '.spec.service': Service shop/dice does not have port 81 (it has 80)",
    ],
    [
      "a Gateway that does not exist",
      "no-gateway",
      { gateway: "shop/none" },
      "Error: Validation errors: Attribute 'spec.gateway': Could not get specified Gateway",
    ],
    [
      "a host outside of the Gateway's",
      "no-server",
      { hosts: ["dice.example.org"] },
      "Warning: Gateway kyma-system/kyma-gateway has no server for the host dice.example.org",
    ],
    [
      "more than three mistakes",
      "many",
      {
        rules: ["/a", "/b", "/c", "/d", "/e"].map((path) => ({
          path,
          methods: ["GET"],
          noAuth: true,
          service: { name: "none", port: 80 },
        })),
      },
      `Error: Validation errors: ${[0, 1, 2]
        .map((n) => `Attribute '.spec.rules[${n}].service': Service shop/none does not exist`)
        .join("\n")}\n2 more error(s)...`,
    ],
  ])("%s", async (_, name, spec, status) => {
    await platform.apply(rule(name, spec));
    await statusOf(name).toBe(status);
  });

  test("a Service that appears later", async () => {
    await platform.apply(rule("late", { service: { name: "late", port: 80 } }));
    await statusOf("late").toMatch(/does not exist/);
    await platform.service("shop", "late", 80);
    await statusOf("late").toBe(ready);
  });

  test("a short host, of a Gateway with several", async () => {
    await platform.client.apply(
      {
        group: "networking.istio.io",
        version: "v1",
        kind: "Gateway",
        plural: "gateways",
        namespaced: true,
      },
      {
        metadata: { name: "two", namespace: "shop" },
        spec: {
          servers: [
            {
              port: { number: 443, name: "s", protocol: "HTTPS" },
              hosts: ["*.a.example", "*.b.example"],
            },
          ],
        },
      },
    );
    await platform.apply(rule("short", { gateway: "shop/two" }));
    await statusOf("short").toBe(
      "Error: Validation errors: Attribute '.spec.hosts[0]': Lowercase RFC 1123 label (short host) is only supported as the APIRule host when selected Gateway has a single host definition matching *.<fqdn> format",
    );
  });
});

test("of two namespaces that claim one host, the first has it, and the second gets it when the first is gone", async () => {
  await platform.apply(rule("first", { hosts: ["contested"] }, "shop"));
  await statusOf("first").toBe(ready);
  // Which was first is known in seconds.
  const second = () => Math.floor(Date.now() / 1_000);
  const written = second();
  await expect.poll(second).toBeGreaterThan(written);
  await platform.apply(rule("second", { hosts: ["contested.example.com"] }, "other"));
  await statusOf("second", "other").toBe(
    "Error: Validation errors: Attribute '.spec.hosts[0]': Host is occupied by an APIRule of another namespace",
  );
  await statusOf("first").toBe(ready);
  await platform.client.delete(apiRules, { namespace: "shop", name: "first" });
  await statusOf("second", "other").toBe(ready);
});

test.each([
  ["v2", "since", (name: string) => rule(name, { hosts: ["since"] }, "other")],
  [
    "v1beta1",
    "since-old",
    (name: string) => ({
      ...rule(name, {}, "other"),
      apiVersion: "gateway.kyma-project.io/v1beta1",
      spec: {
        host: "since-old.example.com",
        gateway: "kyma-system/kyma-gateway",
        service: { name: "dice", port: 80 },
        rules: [{ path: "/.*", methods: ["GET"], accessStrategies: [{ handler: "noop" }] }],
      },
    }),
  ],
])(
  "an older rule that is edited (%s) does not take a host from another namespace",
  async (version, host, edited) => {
    const name = `old-${version}`;
    await platform.apply(rule(name, { hosts: [name] }, "other"));
    await statusOf(name, "other").toBe(ready);
    await platform.apply(rule(host));
    await statusOf(host).toBe(ready);
    await platform.apply(edited(name));
    const hostPath = version === "v2" ? ".spec.hosts[0]" : ".spec.host";
    await statusOf(name, "other").toBe(
      `Error: Validation errors: Attribute '${hostPath}': Host is occupied by an APIRule of another namespace`,
    );
    await statusOf(host).toBe(ready);
    // It gets it when it is free, as everybody does, and keeps it from then on.
    await platform.client.delete(apiRules, { namespace: "shop", name: host });
    await statusOf(name, "other").toMatch(/^(?!.*occupied)/);
    await platform.apply(rule(host));
    await statusOf(host).toMatch(/occupied/);
  },
);

test("a host of a Gateway that is for another namespace is not taken by an older rule", async () => {
  await platform.gateway("shop/own", "shop/*.own.example");
  const hosts = ["www.own.example"];
  await platform.apply(rule("squatter", { hosts, gateway: "kyma-system/kyma-gateway" }, "other"));
  await statusOf("squatter", "other").toMatch(/has no server for the host/);
  await platform.apply(rule("owner", { hosts, gateway: "shop/own" }));
  await statusOf("owner").toMatch(/^(?!.*occupied)/);
});

test("a Service of another namespace is exposed only if it permits that", async () => {
  const service = { name: "private", namespace: "treasury", port: 80 };
  const refusal =
    /Service treasury\/private is not exposable from namespace shop: annotate it with/;
  await platform.apply(rule("taker", { service }));
  await statusOf("taker").toMatch(refusal);
  // The same answer whether it exists or not.
  await platform.service("treasury", "private", 80);
  await platform.apply(rule("taker-too", { hosts: ["too"], service }));
  await statusOf("taker-too").toMatch(refusal);
  platform.exposable = "other, shop";
  await platform.service("treasury", "private", 80);
  platform.exposable = "";
  await statusOf("taker").toBe(ready);
});

describe("certificates", async () => {
  const collected = async () => {
    const target = { name: certificatesSecretName, namespace: systemNamespace };
    const { data = {} } = await platform.client.get(resources.secrets, target);
    return Object.keys(data).filter((key) => key.startsWith("certs."));
  };
  const good = await certificateFor("*.good.example");

  test.each<
    [
      what: string,
      name: string,
      pair: { crt?: string; key?: string } | undefined,
      status: string | RegExp,
    ]
  >([
    ["that is good", "good", good, ready],
    ["that has expired", "expired", await certificateFor("*.expired.example", -1), /expired at /],
    ["without a key", "half", { crt: good.crt }, /Secret certs\/half has no tls.key/],
    [
      "with the key of another",
      "mixed",
      { crt: good.crt, key: (await certificateFor("x.example")).key },
      /is not the key of its certificate/,
    ],
    ["that is no certificate", "text", { crt: "x", key: "y" }, /is not a certificate in PEM/],
    ["for other hosts", "foreign", good, /is for other hosts/],
    [
      "that does not exist",
      "absent",
      undefined,
      /Secret certs\/absent of type kubernetes.io\/tls does not exist/,
    ],
  ])("%s", async (_, name, pair, status) => {
    if (pair) await platform.certificate(`certs/${name}`, pair);
    await platform.gateway(`certs/${name}`, `*.${name}.example`, { credentialName: name });
    const gateway = `certs/${name}`;
    await platform.apply(rule(`certified-${name}`, { gateway, hosts: ["dice"] }));
    const polled = statusOf(`certified-${name}`);
    await (typeof status === "string" ? polled.toBe(status) : polled.toMatch(status));
    if (typeof status !== "string") await polled.toMatch(/^Warning: HTTPS for dice\./);
  });

  test("are collected in one Secret when they can be served, and leave it with their Gateway", async () => {
    await expect
      .poll(collected)
      .toEqual(expect.arrayContaining(["certs.good.crt", "certs.good.key", "certs.expired.crt"]));
    expect((await collected()).filter((key) => /half|mixed|text|absent/.test(key))).toEqual([]);
    await platform.client.delete(apiRules, { namespace: "shop", name: "certified-good" });
    await expect.poll(collected).not.toContain("certs.good.key");
  });

  test("are taken from istio-system, where the original's tutorials put them", async () => {
    await platform.certificate("istio-system/central", await certificateFor("*.central.example"));
    await platform.gateway("shop/central", "*.central.example", { credentialName: "central" });
    await platform.apply(rule("central", { gateway: "shop/central", hosts: ["dice"] }));
    await statusOf("central").toBe(ready);
  });

  test("are read again when they change", async () => {
    await platform.certificate("certs/half", await certificateFor("*.half.example"));
    await statusOf("certified-half").toBe(ready);
  });
});
