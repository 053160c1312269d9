/**
 * APIRules on both engines, with a domain and a certificate of one's own: what is served, what changes while it is, what
 * objects that are wrong do to others.
 */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { promisify } from "node:util";
import { certificateFor, freePort, type KeyPair } from "@spry/test-kit";
import { afterAll, expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { hostAddress } from "../support/host-address.ts";
import { startIssuer } from "../support/issuer.ts";
import { functionManifest } from "../support/platform.ts";

const scratch = mkdtempSync(path.join(process.env["TMPDIR"] ?? "/tmp", "exposed-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const issuerPort = await freePort();
const platform = enginePlatform(undefined, [`--allow-loopback=${hostAddress()}:${issuerPort}`]);

const gateway = (tls: object) => ({
  apiVersion: "networking.istio.io/v1",
  kind: "Gateway",
  metadata: { name: "web", namespace: "default" },
  spec: {
    selector: { app: "any" },
    servers: [
      {
        port: { number: 443, name: "https", protocol: "HTTPS" },
        hosts: ["*.shop.example"],
        tls: { mode: "SIMPLE", ...tls },
      },
      {
        port: { number: 80, name: "http", protocol: "HTTP" },
        hosts: ["*.shop.example"],
        tls: { httpsRedirect: true },
      },
    ],
  },
});

function apiRule(name: string, more: object = {}, namespace = "default") {
  return {
    apiVersion: "gateway.kyma-project.io/v2",
    kind: "APIRule",
    metadata: { name, namespace },
    spec: {
      gateway: "default/web",
      hosts: [`${name}.shop.example`],
      service: { name: "till", port: 80 },
      rules: [{ path: "/*", methods: ["GET"], noAuth: true }],
      ...more,
    },
  };
}

const apply = async (...objects: object[]) => {
  const text = objects.map((each) => JSON.stringify(each)).join("\n");
  await platform.k("apply -f -", text);
};

async function certificate({ crt, key }: Partial<KeyPair>): Promise<void> {
  const base64 = (text = "") => Buffer.from(text).toString("base64");
  await apply({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "shop-tls", namespace: "default" },
    type: "kubernetes.io/tls",
    data: { "tls.crt": base64(crt), "tls.key": base64(key) },
  });
}

const stateOf = async (name: string, namespace = "default") =>
  platform.k(
    `get apirule ${name} -n ${namespace} -o jsonpath={.status.state}:{.status.description}`,
  );

/** The status and the body, with the certificate checked by its name and by this authority. */
async function curl(host: string, trusted: KeyPair, ...args: string[]): Promise<string> {
  const file = path.join(scratch, "trusted.pem");
  writeFileSync(file, trusted.crt);
  const { hostname, port } = platform.gatewayTls;
  const to = ["--connect-to", `::${hostname}:${port}`, "--cacert", file];
  const command = ["-sS", ...to, "-w", "%{http_code} %{http_version}", "-o", "/dev/null", ...args];
  return promisify(execFile)("curl", [...command, `https://${host}/`]).then(
    ({ stdout }) => stdout,
    (error: { code: number }) => `curl ${error.code}`,
  );
}

let pair: KeyPair;

test("a Function is served under a domain of one's own, over HTTP/2", async () => {
  pair = await certificateFor("*.shop.example");
  await apply(gateway({ credentialName: "shop-tls" }));
  await certificate(pair);
  await platform.k(
    "apply -f -",
    functionManifest("till", "module.exports = { main: () => 'in' };"),
  );
  await platform.k("wait --for=condition=Running function/till --timeout=100s");
  await apply(apiRule("till"));
  await expect.poll(() => stateOf("till")).toBe("Ready:Reconciled successfully");
  await expect.poll(() => curl("till.shop.example", pair)).toBe("200 2");
  expect(await curl("till.shop.example", pair, "--http1.1")).toBe("200 1.1");
});

test("a renewed certificate is served without a restart", async () => {
  const renewed = await certificateFor("*.shop.example");
  await certificate(renewed);
  await expect.poll(() => curl("till.shop.example", renewed)).toBe("200 2");
  // What trusts the old one alone is not deceived: curl's code for an unknown authority.
  expect(await curl("till.shop.example", pair)).toBe("curl 60");
  pair = renewed;
});

test("half a certificate and one that has expired are in the status; other hosts are served", async () => {
  const other = await certificateFor("*.other.example");
  await platform.k("create namespace other");
  const elsewhere = gateway({ credentialName: "other-tls" });
  const own = JSON.parse(JSON.stringify(elsewhere).replaceAll("shop.example", "other.example"));
  own.metadata = { name: "other", namespace: "other" };
  const secret = path.join(scratch, "other");
  writeFileSync(`${secret}.crt`, other.crt);
  writeFileSync(`${secret}.key`, other.key);
  await platform.k(`create secret tls other-tls -n other --cert=${secret}.crt --key=${secret}.key`);
  await apply(own, apiRule("there", { gateway: "other/other", hosts: ["there.other.example"] }));
  await expect.poll(() => curl("there.other.example", other)).toBe("200 2");
  await certificate({ crt: pair.crt, key: other.key });
  await expect.poll(() => stateOf("till")).toMatch(/^Warning:HTTPS for till.shop.example: /);
  await certificate(await certificateFor("*.shop.example", -1));
  await expect.poll(() => stateOf("till")).toMatch(/^Warning:.*expired/);
  expect(await curl("there.other.example", other)).toBe("200 2");
  await certificate(pair);
  await expect.poll(() => stateOf("till")).toBe("Ready:Reconciled successfully");
  await expect.poll(() => curl("till.shop.example", pair)).toBe("200 2");
});

test("a host belongs to the namespace that had it first", async () => {
  await platform.k("create namespace thief");
  const rules = [{ path: "/nothing", methods: ["GET"], noAuth: true }];
  const stolen = { hosts: ["till.shop.example"], rules };
  const service = { name: "till", namespace: "default", port: 80 };
  await apply(apiRule("till", { ...stolen, service }, "thief"));
  await expect.poll(() => stateOf("till", "thief")).toMatch(/^Error:.*(not exposable|occupied)/s);
  expect(await curl("till.shop.example", pair)).toBe("200 2");
  expect(await stateOf("till")).toBe("Ready:Reconciled successfully");
  // Nor does an APIRule that is older than its owner and edited.
  const service80 = { name: "till", port: 80 };
  await apply(apiRule("fresh", { service: service80 }));
  await expect.poll(() => stateOf("fresh")).toBe("Ready:Reconciled successfully");
  await apply(apiRule("till", { hosts: ["fresh.shop.example"], rules, service }, "thief"));
  await expect.poll(() => stateOf("till", "thief")).toMatch(/^Error:.*occupied/s);
  expect(await curl("fresh.shop.example", pair)).toBe("200 2");
  expect(await stateOf("fresh")).toBe("Ready:Reconciled successfully");
});

test("a rule for a Service that does not exist says so, and becomes ready with it", async () => {
  await apply(apiRule("late", { service: { name: "late", port: 80 } }));
  await expect
    .poll(() => stateOf("late"))
    .toMatch(/^Error:.*Service default\/late does not exist/s);
  await expect.poll(() => curl("late.shop.example", pair)).toBe("503 2");
  const spec = { selector: { "serverless.kyma-project.io/function-name": "till" } };
  const ports = [{ port: 80, targetPort: 8080, name: "http" }];
  await apply({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "late", namespace: "default" },
    spec: { ...spec, ports },
  });
  await expect.poll(() => stateOf("late")).toBe("Ready:Reconciled successfully");
  await expect.poll(() => curl("late.shop.example", pair)).toBe("200 2");
});

test("with tokens, a Function is not called by its own host", async () => {
  expect(await platform.call("till.default")).toMatchObject({ status: 200 });
  const issuer = await startIssuer(platform.hostAddress, issuerPort);
  const authentications = [{ issuer: issuer.url, jwksUri: `${issuer.url}/keys` }];
  await apply(
    apiRule("till", { rules: [{ path: "/*", methods: ["GET"], jwt: { authentications } }] }),
  );
  await expect.poll(() => curl("till.shop.example", pair)).toBe("403 2");
  const bearer = ["-H", `authorization: Bearer ${await issuer.token()}`];
  expect(await curl("till.shop.example", pair, ...bearer)).toBe("200 2");
  expect(await platform.call("till.default")).toMatchObject({ status: 403 });
  await issuer.close();
});

test("without APIRules it is called by its own host again", async () => {
  await platform.k("delete apirules --all -n default");
  await expect.poll(() => platform.call("till.default")).toMatchObject({ status: 200 });
});
