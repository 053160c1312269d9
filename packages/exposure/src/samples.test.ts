/** The original's own samples, tutorials and test manifests, unmodified, as `kubectl apply` sends them. */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { type ApiRule, apiRules } from "@spry/function";
import { type KubeObject } from "@spry/kube";
import { loadAll } from "js-yaml";
import { certificateFor } from "@spry/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { apiRulesV1beta1 } from "./conversion/v1beta1.ts";
import { TestPlatform } from "./testing/platform.ts";

const folder = path.join(import.meta.dirname, "testdata");

/** What the original's tests fill in. */
const templateValues: Record<string, string> = {
  Gateway: "kyma-system/kyma-gateway",
  ServiceName: "httpbin",
  ServicePort: "8000",
  ServiceNamespace: "test",
  SecondServiceName: "httpbin",
  SecondServicePort: "8000",
  OtherNamespace: "httpbin",
  OtherNamespaceServiceName: "httpbin",
  OtherNamespaceServicePort: "8000",
  Issuer: "https://issuer.example",
  JwksUri: "https://issuer.example/keys",
  JwtSecuredPath: "/ip",
  OtherNamespaceJwtSecuredPath: "/headers",
  JwtSecuredPathWithService: "/headers",
  JwtSecuredPathWithoutService: "/ip",
  HeaderKey: "x-request-test",
  HeaderValue: "a-header-value",
  Cookie: "x-request-test-cookie",
  CookieValue: "a-cookie-value",
  ExtAuthProvider: "sample-ext-authz-http",
  AllowCredentials: "true",
  MaxAge: "86400",
};
/** And the variables of its tutorials. */
const variables: Record<string, string> = {
  PARENT_DOMAIN: "local.kyma.dev",
  WORKLOAD_DOMAIN: "httpbin.my.example",
  GATEWAY_DOMAIN: "*.my.example",
  DOMAIN_TO_EXPOSE_WORKLOADS: "my.example",
  GATEWAY: "test/custom-tls-gateway",
  NAMESPACE: "test",
  ISSUER: "https://issuer.example",
  JWKS_URI: "https://issuer.example/keys",
};
const lists: Record<string, string[]> = {
  AllowOrigins: [".*local.kyma.dev"],
  AllowMethods: ["GET", "POST"],
  AllowHeaders: ["x-custom-allow-headers"],
  ExposeHeaders: ["x-custom-expose-headers"],
};

function read(file: string): KubeObject[] {
  const values = {
    ...templateValues,
    Name: path.basename(file, ".yaml"),
    Host: path.basename(file, ".yaml"),
  };
  const text = readFileSync(path.join(folder, file), "utf8")
    .replace(/\{\{- range \.(\w+) \}\}\n([^]*?)\{\{- end \}\}/g, (_, name: string, line: string) =>
      (lists[name] ?? [])
        .map((item) => line.replace(/\{\{ \.(regex)? \}\}/, JSON.stringify(item)))
        .join(""),
    )
    .replace(/\{\{ ?\.(\w+) ?\}\}/g, (_, name: keyof typeof values) => values[name] ?? "?")
    .replace(/\$\{?([A-Z_]+)\}?/g, (_, name: string) => variables[name] ?? "?");
  return (loadAll(text) as (KubeObject | undefined)[]).filter((each) => each !== undefined);
}

let platform: TestPlatform;
beforeAll(async () => {
  platform = await TestPlatform.start();
  const { certificate, gateway, service } = {
    certificate: platform.certificate.bind(platform),
    gateway: platform.gateway.bind(platform),
    service: platform.service.bind(platform),
  };
  await gateway("kyma-system/kyma-gateway", "*.local.kyma.dev");
  // The samples expose Services of other namespaces; here those permit it (ADR 0020).
  platform.exposable = "*";
  await certificate("istio-system/custom-tls-secret", await certificateFor("*.my.example"));
  await certificate("istio-system/example-com-tls", await certificateFor("*.example.com"));
  for (const namespace of ["default", "test", "httpbin"])
    await service(namespace, "httpbin", 80, 8000);
  await service("default", "orders-service", 80, 8008);
  await service("default", "helloworld", 5000);
  await service("nginx", "nginx", 80);
  await service("foo-namespace", "foo-service", 8080);
});
afterAll(async () => platform[Symbol.asyncDispose]());

const ready = "Ready: Reconciled successfully";
const noServer = (host: string) =>
  `Warning: Gateway kyma-system/kyma-gateway has no server for the host ${host}`;
const notAccepted = (what: string) => new RegExp(what);

/** All that are there, by what becomes of them; those that are not named become ready. */
const outcomes: Record<string, string | RegExp> = {
  // Hosts of these samples are outside of the Gateway's domain.
  "gateway_v1beta1_apirule.yaml": noServer("v1beta1.testhost.com"),
  "gateway_v1beta1_apirule-svc-per-rule.yaml": noServer("perrule.testhost.com"),
  "gateway_v1beta1_apirule-svc-with-override.yaml": noServer("override.testhost.com"),
  "istio_v1beta1_apirule.yaml": noServer("istio.testhost.com"),
  "tutorial-reference.yaml": noServer("foo.bar"),
  // Ory's stack introspects tokens; without it the rule lets no request pass; the others are served.
  "3svc.yaml": `${noServer("3svc.testhost.com")}\nno request passes spec.rules[0]: access strategy "oauth2_introspection" is not supported: use no_auth or jwt`,
  "invalid_v1beta1.yaml": `${noServer("3svc.testhost.com")}\nno request passes spec.rules[0]: access strategy "oauth2_introspection" is not supported: use no_auth or jwt`,
  // Refused at once, where the original says so in the status.
  "e2e-validation-error.yaml": notAccepted(
    'APIRule.gateway.kyma-project.io "e2e-validation-error" is invalid: spec.rules\\[0\\].jwt.authentications\\[1\\]: Invalid value: multiple jwt configurations that differ for the same issuer',
  ),
  "e2e-ext-auth-apirule.yaml": notAccepted(
    "spec.rules\\[0\\].extAuth: Invalid value: external authorization is not supported",
  ),
  // Clients' certificates are not checked, so that nothing is served as if they had been.
  "tutorial-mtls-gateway.yaml":
    "Warning: Gateway test/kyma-mtls-gateway has no HTTPS server for the host httpbin.my.example: TLS mode MUTUAL is not supported, use SIMPLE",
};

const files = globSync("*.yaml", { cwd: folder }).sort();

test.each(files)("%s", async (file) => {
  const outcome = outcomes[file] ?? ready;
  const objects = read(file);
  const rules = objects.filter(({ kind }) => kind === "APIRule");
  expect(rules.length).toBeGreaterThan(0);
  // The Gateway that a tutorial assumes.
  if (file === "tutorial-expose-no-auth.yaml")
    await platform.gateway("test/custom-tls-gateway", "*.my.example", {
      credentialName: "custom-tls-secret",
    });
  const applying = (async () => {
    for (const object of objects) await platform.apply(withNamespace(object, file));
  })();
  if (outcome instanceof RegExp) return expect(applying).rejects.toThrow(outcome);
  await applying;
  for (const { metadata } of rules) {
    const { namespace = namespaceOf(file), name = "" } = metadata;
    await expect.poll(() => platform.statusOf(namespace, name), { message: file }).toBe(outcome);
  }
  // What follows uses the same hosts.
  for (const { metadata } of rules) {
    const { namespace = namespaceOf(file), name = "" } = metadata;
    await platform.client.delete(apiRules, { namespace, name });
  }
  if (file === "tutorial-short-host.yaml")
    await platform.gateway("kyma-system/kyma-gateway", "*.local.kyma.dev");
  return undefined;
});

const namespaceOf = (file: string) => (file.startsWith("e2e-") ? "test" : "default");
const withNamespace = (object: KubeObject, file: string): KubeObject => ({
  ...object,
  metadata: { namespace: namespaceOf(file), ...object.metadata },
});

test("what was written as v1beta1 is read as v1beta1 without loss, and as v2 as far as v2 can say it", async () => {
  const [written] = read("istio_v1beta1_apirule.yaml");
  await platform.apply(withNamespace(written!, "istio"));
  const target = { namespace: "default", name: "istio-service-v1beta1" };
  await expect.poll(() => platform.statusOf("default", target.name)).toBeDefined();
  const older = await platform.client.get(apiRulesV1beta1, target);
  expect(older.spec).toEqual((written as { spec?: unknown }).spec);
  expect(older.status?.APIRuleStatus?.code).toBe("WARNING");
  const newer = await platform.client.get<ApiRule>(apiRules, target);
  expect(newer.spec).toMatchObject({
    hosts: ["istio.testhost.com"],
    rules: [
      {
        path: "/*",
        jwt: { authorizations: [{ requiredScopes: ["a", "b"], audiences: ["audA", "audB"] }] },
        request: { headers: { "X-Some-Data": "some-data" }, cookies: { "some-data": "data" } },
      },
    ],
  });
  expect(newer.metadata.annotations).toMatchObject({
    "gateway.kyma-project.io/original-version": "v1beta1",
  });
});

test("a table of APIRules shows state and hosts", async () => {
  const [written] = read("e2e-short-host.yaml");
  await platform.apply(withNamespace(written!, "e2e-short-host"));
  await expect.poll(() => platform.statusOf("test", "e2e-short-host")).toBe(ready);
  const table = await platform.client.raw(
    "GET",
    "/apis/gateway.kyma-project.io/v2/namespaces/test/apirules",
    {
      accept: "application/json;as=Table;v=v1;g=meta.k8s.io",
    },
  );
  const { columnDefinitions, rows } = (await table.json()) as {
    columnDefinitions: { name: string }[];
    rows: { cells: string[] }[];
  };
  expect(columnDefinitions.map(({ name }) => name)).toEqual(["Name", "Status", "Hosts"]);
  expect(rows.map(({ cells }) => cells)).toContainEqual([
    "e2e-short-host",
    "Ready",
    '["e2e-short-host"]',
  ]);
});

test("what v2 cannot express can be labelled as v2", async () => {
  const [written] = read("3svc.yaml");
  await platform.apply(withNamespace(written!, "3svc"));
  const target = { namespace: "default", name: "multiple-service" };
  const patch = { metadata: { labels: { tier: "front" } } };
  const { metadata, spec } = await platform.client.patch<ApiRule>(apiRules, target, patch);
  expect({ labels: metadata.labels, rules: spec.rules }).toMatchObject({
    labels: { tier: "front" },
    rules: [],
  });
});

test("an annotation that is changed is checked like the spec that it keeps", async () => {
  const [written] = read("3svc.yaml");
  await platform.apply(withNamespace(written!, "3svc"));
  const target = { namespace: "default", name: "multiple-service" };
  const key = "gateway.kyma-project.io/v1beta1-spec";
  const { metadata } = await platform.client.get<ApiRule>(apiRules, target);
  const annotations = { [key]: metadata.annotations?.[key]?.replace("/headers|/ip", "/(") };
  await expect(
    platform.client.patch(apiRules, target, { metadata: { annotations } }),
  ).rejects.toThrow(/spec.rules\[2\].path: Invalid value: .* is not a valid regular expression/);
});
