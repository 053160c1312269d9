/** cert-manager, unmodified: its certificates for hosts of APIRules, and their renewal while they are served. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { type IncomingMessage } from "node:http";
import { get } from "node:https";
import path from "node:path";
import { type TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { certManager } from "../../../tools/foreign-tools/cert-manager.ts";
import { freePort } from "../../kit/index.ts";
import { functionManifest, Platform } from "../../support/platform.ts";

const programs = certManager();
const minuteMs = 60_000;
const host = "till.shop.example";

describe.skipIf(!programs)("cert-manager (needs: npm run foreign-tools)", () => {
  const { controller, definitions } = programs ?? { controller: "", definitions: "" };
  const platform = new Platform();
  let child: ChildProcess | undefined;
  let output = "";

  beforeAll(async () => {
    await platform.start();
    for (const file of readdirSync(definitions).filter((name) => name.endsWith(".yaml"))) {
      // As its chart renders the names in their labels.
      const text = readFileSync(path.join(definitions, file), "utf8");
      await platform.k("create -f -", text.replaceAll(/'\{\{.*\}\}'/g, "cert-manager"));
    }
    await platform.k("create namespace cert-manager");
    child = spawn(
      controller,
      [
        `--kubeconfig=${platform.kubeconfig}`,
        "--cluster-resource-namespace=cert-manager",
        "--leader-election-namespace=cert-manager",
        `--metrics-listen-address=127.0.0.1:${await freePort()}`,
      ],
      { env: { PATH: process.env.PATH }, stdio: ["ignore", "pipe", "pipe"] },
    );
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk) => (output += chunk));
  }, 3 * minuteMs);
  afterAll(async () => {
    child?.kill("SIGKILL");
    await platform.remove();
  });

  beforeEach(({ onTestFailed }) => onTestFailed(() => console.error(output.slice(-4000))));

  const apply = (...objects: object[]) =>
    platform.k("apply -f -", objects.map((each) => JSON.stringify(each)).join("\n"));

  const issuer = (name: string, spec: object) => ({
    apiVersion: "cert-manager.io/v1",
    kind: "Issuer",
    metadata: { name },
    spec,
  });
  const certificate = (name: string, issuerName: string, spec: object) => ({
    apiVersion: "cert-manager.io/v1",
    kind: "Certificate",
    metadata: { name },
    spec: { secretName: name, issuerRef: { name: issuerName }, ...spec },
  });

  /** Of the certificate that the gateway shows, which is checked by the authority's; undefined where there is none. */
  async function serialServed(): Promise<string | undefined> {
    const text = await platform.k("get secret authority -o jsonpath={.data.tls\\.crt}");
    const { hostname, port } = platform.gatewayTls;
    const ca = Buffer.from(text, "base64");
    const request = get({
      host: hostname,
      port,
      servername: host,
      headers: { host },
      ca,
      agent: false,
    });
    try {
      const [response] = (await once(request, "response")) as [IncomingMessage];
      response.resume();
      if (response.statusCode !== 200) return undefined;
      return (response.socket as TLSSocket).getPeerCertificate().serialNumber;
    } catch {
      return undefined;
    }
  }

  test(
    "a Gateway's certificate is its Certificate's, and is renewed while it is served",
    async () => {
      await platform.k(
        "apply -f -",
        functionManifest("till", "module.exports = { main: () => 'in' };"),
      );
      await apply(
        issuer("self", { selfSigned: {} }),
        certificate("authority", "self", { isCA: true, commonName: "shop" }),
        issuer("authority", { ca: { secretName: "authority" } }),
        // Renewed about 20 s after it has been issued.
        certificate("shop-tls", "authority", {
          dnsNames: ["*.shop.example"],
          duration: "1h",
          renewBefore: "59m40s",
        }),
        {
          apiVersion: "networking.istio.io/v1",
          kind: "Gateway",
          metadata: { name: "web" },
          spec: {
            servers: [
              {
                port: { number: 443, name: "https", protocol: "HTTPS" },
                hosts: ["*.shop.example"],
                tls: { mode: "SIMPLE", credentialName: "shop-tls" },
              },
            ],
          },
        },
        {
          apiVersion: "gateway.kyma-project.io/v2",
          kind: "APIRule",
          metadata: { name: "till" },
          spec: {
            gateway: "default/web",
            hosts: [host],
            service: { name: "till", port: 80 },
            rules: [{ path: "/*", methods: ["GET"], noAuth: true }],
          },
        },
      );
      await platform.k("wait --for=condition=Running function/till --timeout=120s");
      await platform.k("wait --for=condition=Ready certificate/shop-tls --timeout=120s");
      await expect.poll(serialServed, { timeout: minuteMs }).toBeDefined();
      const first = await serialServed();
      const platformOf = await platform.k("get apirule till -o jsonpath={.status.state}");
      expect(platformOf).toBe("Ready");
      await expect
        .poll(async () => (await serialServed()) ?? first, { timeout: 2 * minuteMs, interval: 250 })
        .not.toBe(first);
      const revision = await platform.k("get certificate shop-tls -o jsonpath={.status.revision}");
      expect(Number(revision)).toBeGreaterThan(1);
    },
    6 * minuteMs,
  );
});
