/** For the tests of this room: APIRules and Gateways on a real API server, and an issuer of tokens. */
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { apiRuleCrd, gatewayCrd } from "@spry/exposure";
import {
  type ApiRule,
  apiRules,
  certificatesSecretName,
  type IstioGateway,
  istioGateways,
} from "@spry/function";
import { type HostPort, type KubeClient, resources } from "@spry/kube";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { type Bench, startBench } from "./bench.ts";

export const systemNamespace = "kyma-system";
/** The issuers that `startIssuer` has started, as an operator lists them. */
const issuers: HostPort[] = [];
export const exposure = {
  namespace: systemNamespace,
  ownCertificates: true,
  allowedLoopback: issuers,
};

export type Servers = NonNullable<NonNullable<IstioGateway["spec"]>["servers"]>;

export interface ExposureBench extends Bench {
  /** In `default` unless it says otherwise. */
  apiRule(name: string, spec: Partial<ApiRule["spec"]>, namespace?: string): Promise<void>;
  gatewayOf(name: string, servers: Servers): Promise<void>;
  /** The Secret of collected certificates: PEM by `<name>.crt` and `<name>.key`. */
  certificates(pairs: Record<string, { crt: string; key: string }>): Promise<void>;
}

export const plain = (hosts: string[], tls?: object): Servers[number] => ({
  port: { number: 80, name: "http", protocol: "HTTP" },
  hosts,
  ...(tls ? { tls } : {}),
});
export const secured = (hosts: string[], credentialName?: string): Servers[number] => ({
  port: { number: 443, name: "https", protocol: "HTTPS" },
  hosts,
  tls: { mode: "SIMPLE", ...(credentialName ? { credentialName } : {}) },
});

/** With definitions that are ours, and the Gateway `kyma-system/kyma-gateway` for plain HTTP and HTTPS of `*.example.com`. */
export async function startExposureBench(
  options: Parameters<typeof startBench>[0] = {},
): Promise<ExposureBench> {
  const bench = await startBench({ exposure, before: define, ...options });
  const { client } = bench;
  await client.create(resources.namespaces, { metadata: { name: systemNamespace } });
  const own: ExposureBench = Object.assign(bench, {
    async apiRule(name: string, spec: Partial<ApiRule["spec"]>, namespace = "default") {
      const rule: ApiRule = {
        metadata: { name, namespace },
        spec: {
          gateway: `${systemNamespace}/kyma-gateway`,
          hosts: [name],
          service: { name: "hello", namespace: "default", port: 80 },
          rules: [{ path: "/*", methods: ["GET"], noAuth: true }],
          ...spec,
        },
      };
      await client.apply(apiRules, rule, { fieldManager: "test" });
      await bench.heard();
    },
    async gatewayOf(name: string, servers: Servers) {
      const gateway: IstioGateway = {
        metadata: { name, namespace: systemNamespace },
        spec: { servers },
      };
      await client.apply(istioGateways, gateway, { fieldManager: "test" });
      await bench.heard();
    },
    async certificates(pairs: Record<string, { crt: string; key: string }>) {
      const base64 = (text: string) => Buffer.from(text).toString("base64");
      const data = Object.fromEntries(
        Object.entries(pairs).flatMap(([name, { crt, key }]) => [
          [`${name}.crt`, base64(crt)],
          [`${name}.key`, base64(key)],
        ]),
      );
      const metadata = { name: certificatesSecretName, namespace: systemNamespace };
      await client.apply(resources.secrets, { metadata, data }, { fieldManager: "test" });
      await bench.heard();
    },
  });
  const hosts = ["*.example.com"];
  await own.gatewayOf("kyma-gateway", [plain(hosts), secured(hosts)]);
  return own;
}

async function define(client: KubeClient): Promise<void> {
  const webhook = { url: "https://127.0.0.1:1", caBundle: "" };
  for (const definition of [apiRuleCrd(webhook), gatewayCrd()])
    await client.create(resources.customResourceDefinitions, definition);
}

/** An issuer of tokens (OpenID Connect): its keys at `/keys`, over HTTP. `isAllowed`: the operator has listed it. */
export async function startIssuer({ isAllowed = true } = {}) {
  const make = async (kid: string, alg = "ES256") => {
    const { privateKey, publicKey } = await generateKeyPair(alg);
    return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg } };
  };
  let key = await make("first");
  let fetched = 0;
  const server = createServer((_request, response) => {
    fetched++;
    response.end(JSON.stringify({ keys: [key.jwk] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  if (isAllowed) issuers.push({ host: "127.0.0.1", port });
  return {
    url,
    authentication: { issuer: url, jwksUri: `${url}/keys` },
    fetched: () => fetched,
    get key() {
      return key;
    },
    async rotate(kid: string) {
      key = await make(kid);
    },
    token: (claims: JWTPayload = {}, header: object = {}) =>
      new SignJWT({ iss: url, sub: "ann", ...claims })
        .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
        .setExpirationTime(claims.exp ?? "5m")
        .sign(key.privateKey),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
