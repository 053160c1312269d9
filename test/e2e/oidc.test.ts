/**
 * The original's own manifests of APIRules that ask for tokens, as its repository has them, with an OpenID Connect
 * provider that issues these tokens. Only what the original's tests and tutorials leave open is filled in.
 */
import { execFile } from "node:child_process";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { certificateFor, freePort } from "@spry/test-kit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type OidcProvider, startOidcProvider } from "../support/oidc.ts";
import { Platform, root } from "../support/platform.ts";

const providerPort = await freePort();
const platform = new Platform({
  args: ["--no-example", `--allow-loopback=127.0.0.1:${providerPort}`],
});
const manifests = path.join(root, "packages/exposure/src/testdata");
const workloadDomain = "httpbin.tls.my-own-domain.example.com";
let provider: OidcProvider;
let curlConfig: string[];

const echo = `
apiVersion: serverless.kyma-project.io/v1alpha2
kind: Function
metadata: { name: echo, namespace: test }
spec:
  runtime: nodejs24
  source:
    inline:
      source: |
        module.exports = { main: (event) => event.extensions.request.path };
---
apiVersion: v1
kind: Service
metadata:
  name: httpbin
  namespace: test
spec:
  selector:
    serverless.kyma-project.io/function-name: echo
    serverless.kyma-project.io/resource: deployment
  ports: [{ name: http, port: 8000, targetPort: 8080 }]
`;

beforeAll(async () => {
  [provider] = await Promise.all([startOidcProvider(providerPort), platform.start()]);
  await platform.k("create namespace test");
  await platform.k("create namespace istio-system");
  await platform.k("apply -f -", echo);
  const { crt, key } = await certificateFor("*.tls.my-own-domain.example.com");
  const files = { "tls.crt": crt, "tls.key": key };
  for (const [name, text] of Object.entries(files))
    writeFileSync(path.join(platform.dataDir, name), text);
  const [cert, keyFile] = Object.keys(files).map((name) => path.join(platform.dataDir, name));
  await platform.k(
    `create secret tls custom-tls-secret -n istio-system --cert=${cert} --key=${keyFile}`,
  );
  await platform.k("wait --for=condition=Running function/echo -n test --timeout=100s");
  const authorities = path.join(platform.dataDir, "authorities.pem");
  writeFileSync(authorities, crt);
  const { port } = new URL(platform.endpoints.gatewayTls);
  curlConfig = ["-sS", "--cacert", authorities, "--connect-to", `::127.0.0.1:${port}`];
}, 200_000);
afterAll(async () => {
  await platform.remove();
  await provider.close();
});

/** What the original's tests fill into templates, and readers of its tutorials into variables. */
async function apply(file: string, more: Record<string, string> = {}): Promise<void> {
  const name = path.basename(file, ".yaml");
  const values: Record<string, string> = {
    Name: name,
    Host: name,
    Gateway: "kyma-system/kyma-gateway",
    ServiceName: "httpbin",
    ServicePort: "8000",
    Issuer: provider.issuer,
    JwksUri: provider.jwksUri,
    ISSUER: provider.issuer,
    JWKS_URI: provider.jwksUri,
    NAMESPACE: "test",
    GATEWAY: "kyma-system/kyma-gateway",
    DOMAIN_TO_EXPOSE_WORKLOADS: "localhost",
    GATEWAY_DOMAIN: "*.tls.my-own-domain.example.com",
    WORKLOAD_DOMAIN: workloadDomain,
    ...more,
  };
  const text = readFileSync(path.join(manifests, file), "utf8")
    .replace(/\{\{ ?\.(\w+) ?\}\}/g, (_, key: string) => values[key] ?? "?")
    .replace(/\$\{?([A-Z_]+)\}?/g, (_, key: string) => values[key] ?? "?")
    .replaceAll("https://{YOUR_TENANT}.accounts.ondemand.com/oauth2/certs", provider.jwksUri)
    .replaceAll("https://{YOUR_TENANT}.accounts.ondemand.com", provider.issuer)
    .replaceAll("https://{IAS_TENANT}.accounts.ondemand.com/oauth2/certs", provider.jwksUri)
    .replaceAll("https://{IAS_TENANT}.accounts.ondemand.com", provider.issuer);
  await platform.k("apply -n test -f -", text);
}

/** The platform's own is there with the first host of its domain. */
async function trustPlatform(): Promise<void> {
  const own = async () => readFileSync(path.join(platform.dataDir, "pki/hosts-ca.crt"), "utf8");
  await expect.poll(own).toContain("CERTIFICATE");
  appendFileSync(path.join(platform.dataDir, "authorities.pem"), `\n${await own()}`);
}

async function ready(name: string): Promise<void> {
  const state = () => platform.k(`get apirule ${name} -n test -o jsonpath={.status.state}`);
  await expect.poll(state, { message: name }).toBe("Ready");
}

/** The status, as `curl` gets it; the certificate of a host may follow a moment after its APIRule. */
async function curl(url: string, ...args: string[]): Promise<string> {
  const command = [...curlConfig, "-o", "/dev/null", "-w", "%{http_code}", ...args, url];
  return promisify(execFile)("curl", command).then(
    ({ stdout }) => stdout,
    (error: { stderr: string }) => error.stderr.trim(),
  );
}

const bearer = (token: string) => ["--header", `Authorization:Bearer ${token}`];

test("e2e-jwt-and-unrestricted.yaml: one path with a token, one without", async () => {
  await apply("e2e-jwt-and-unrestricted.yaml");
  await ready("e2e-jwt-and-unrestricted");
  await trustPlatform();
  const host = "https://e2e-jwt-and-unrestricted.localhost/anything";
  await expect.poll(() => curl(`${host}/noauth`)).toBe("200");
  expect(await curl(`${host}/jwt`)).toBe("403");
  expect(await curl(`${host}/jwt`, ...bearer(await provider.token()))).toBe("200");
});

test("tutorial-expose-jwt.yaml: HTTPS with a certificate of one's own, and a token", async () => {
  await apply("tutorial-expose-jwt.yaml");
  await ready("httpbin-tls");
  const url = `https://${workloadDomain}/headers`;
  await expect.poll(() => curl(url)).toBe("403");
  expect(await curl(url, ...bearer(await provider.token()))).toBe("200");
  expect(await curl(url, ...bearer("x"))).toBe("401");
});

test("e2e-jwt-apirule-with-scope.yaml: scopes", async () => {
  await apply("e2e-jwt-apirule-with-scope.yaml");
  await ready("e2e-jwt-apirule-with-scope");
  const host = "https://e2e-jwt-apirule-with-scope.localhost/anything";
  const read = bearer(await provider.token({ scope: "read" }));
  await expect.poll(() => curl(`${host}/read`, ...read)).toBe("200");
  expect(await curl(`${host}/readwrite`, ...read)).toBe("403");
  const both = bearer(await provider.token({ scope: "read write" }));
  expect(await curl(`${host}/readwrite`, ...both)).toBe("200");
});

test("e2e-jwt-apirule-with-audience.yaml: audiences", async () => {
  await apply("e2e-jwt-apirule-with-audience.yaml");
  await ready("e2e-jwt-apirule-with-audience");
  const host = "https://e2e-jwt-apirule-with-audience.localhost/anything";
  const goats = bearer(await provider.token({ audience: "goats" }));
  await expect.poll(() => curl(`${host}/goats`, ...goats)).toBe("200");
  expect(await curl(`${host}/goatsheeps`, ...goats)).toBe("403");
  const both = bearer(await provider.token({ audience: "goats+sheeps" }));
  expect(await curl(`${host}/goatsheeps`, ...both)).toBe("200");
  expect(await curl(`${host}/goats`, ...bearer(await provider.token()))).toBe("403");
});

test("tokens in another header, and in a parameter", async () => {
  await apply("e2e-jwt-apirule-token-from-header.yaml");
  await apply("e2e-jwt-apirule-token-from-param.yaml");
  const token = await provider.token();
  const header = "https://e2e-jwt-apirule-token-from-header.localhost/anything/header";
  const inHeader = ["--header", `Custom-Token-Header: JwtToken ${token}`];
  await expect.poll(() => curl(header, ...inHeader)).toBe("200");
  expect(await curl(header, ...bearer(token))).toBe("403");
  const param = "https://e2e-jwt-apirule-token-from-param.localhost/anything/param";
  await expect.poll(() => curl(`${param}?token_param=${token}`)).toBe("200");
  expect(await curl(`${param}?access_token=${token}`)).toBe("403");
});

test("e2e-jwt-apirule-unavailable-issuer.yaml: a token of another issuer is refused, others are served", async () => {
  await apply("e2e-jwt-apirule-unavailable-issuer.yaml");
  const url = "https://e2e-jwt-apirule-unavailable-issuer.localhost/anything/unavailable-issuer";
  const token = bearer(await provider.token());
  await expect.poll(() => curl(url, ...token)).toBe("401");
  expect(await curl(`https://${workloadDomain}/headers`, ...token)).toBe("200");
});

test("tutorial-migrate-jwt.yaml (v2), and what it is migrated from (v1beta1)", async () => {
  await apply("tutorial-v1beta1-jwt.yaml");
  const url = "https://httpbin.localhost";
  await expect.poll(() => curl(`${url}/headers`)).toBe("401");
  const token = bearer(await provider.token());
  expect(await curl(`${url}/headers`, ...token)).toBe("200");
  expect(await curl(`${url}/anything`, "-X", "POST", ...token)).toBe("404");
  await apply("tutorial-migrate-jwt.yaml");
  await ready("httpbin");
  await expect.poll(() => curl(`${url}/anything`, "-d", "test data", ...token)).toBe("200");
  expect(await curl(`${url}/ip`, ...token)).toBe("200");
  expect(await curl(`${url}/anything`, "-d", "test data")).toBe("403");
});

test("a key of the provider's is replaced by another, and nothing is restarted", async () => {
  const url = `https://${workloadDomain}/headers`;
  const before = await provider.token();
  expect(await curl(url, ...bearer(before))).toBe("200");
  // As its documentation says: published first, then used, then the old one withdrawn.
  await provider.useKeys("one", "two");
  await provider.useKeys("two", "one");
  expect(await curl(url, ...bearer(await provider.token()))).toBe("200");
  expect(await curl(url, ...bearer(before))).toBe("200");
  await provider.useKeys("three", "two");
  // The set is fetched again because of a key that is new; the old one is gone with it.
  expect(await curl(url, ...bearer(await provider.token()))).toBe("200");
  expect(await curl(url, ...bearer(before))).toBe("401");
});

test("while the provider is unreachable, its last keys are good", async () => {
  const token = await provider.token();
  const other = await provider.token();
  const url = `https://${workloadDomain}/headers`;
  expect(await curl(url, ...bearer(token))).toBe("200");
  await provider.close();
  expect(await curl(url, ...bearer(token))).toBe("200");
  expect(await curl(url, ...bearer(other))).toBe("200");
});
