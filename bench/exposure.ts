/**
 * What exposure costs a request, in microseconds of processor: the look-up of host and rule among 2,000 APIRules and among
 * 2,000 rules of one host, and the check of a token with the issuer's keys at hand. And how long 2,000 APIRules take to
 * become routes, in milliseconds.
 */
import {
  createJwtCheck,
  createRuleMatcher,
  HostTable,
  JwksCache,
  requestPath,
  routesOf,
} from "@spry/exposure";
import { type ApiRule, type ExposedRule, type IstioGateway } from "@spry/function";
import { type Service } from "@spry/kube";
import { KeyObject, verify } from "node:crypto";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { quantile } from "./figures.ts";

const count = 2_000;
const rounds = 9;

export async function run(): Promise<void> {
  const rules = Array.from({ length: count }, (_, n) => apiRule(n));
  const routes = () => new HostTable(routesOf(rules, [dice], [gateway], { ownCertificates: true }));
  const made = Array.from({ length: rounds }, () => {
    const begin = performance.now();
    routes();
    return performance.now() - begin;
  });
  line(`${count} APIRules become routes`, quantile(made, 0.5) * 1_000, 100_000);

  const table = routes();
  const hosts = rules.map(({ metadata }) => `${metadata.name}.example.com`);
  const find = (n: number) =>
    table.find(hosts[n % count] ?? "")?.match("GET", requestPath("/a/b/c?d=e") ?? "");
  line(`host and rule, ${count} APIRules`, await cost(100_000, find), 5);

  const matcher = createRuleMatcher(Array.from({ length: count }, (_, n) => exposedRule(n)));
  const paths = rules.map((_, n) => `/a${n}/b/c`);
  const match = (n: number) => matcher.match("GET", paths[n % count] ?? "");
  line(`rule, ${count} rules of one host`, await cost(100_000, match), 5);

  for (const algorithm of ["ES256", "RS256"]) await tokens(algorithm);
}

async function tokens(algorithm: string): Promise<void> {
  const { publicKey, privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const set = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k" }] });
  const fresh = () => createJwtCheck({ keys: new JwksCache({ fetch: async () => set }) });
  let check = fresh();
  const exp = Math.floor(Date.now() / 1_000) + 3_600;
  const made = await Promise.all(
    Array.from({ length: 400 }, (_, n) =>
      new SignJWT({ iss: "i", scope: "read", n, exp })
        .setProtectedHeader({ alg: algorithm, kid: "k" })
        .sign(privateKey),
    ),
  );
  const authentication = {
    kind: "jwt" as const,
    authentications: [{ issuer: "i", jwksUri: "https://keys.example" }],
    authorizations: [{ requiredScopes: ["read"] }],
  };
  const key = { key: KeyObject.from(publicKey), dsaEncoding: "ieee-p1363" as const };
  const parts = made.map((token) => {
    const end = token.lastIndexOf(".");
    return [
      Buffer.from(token.slice(0, end)),
      Buffer.from(token.slice(end + 1), "base64url"),
    ] as const;
  });
  const bare = (n: number) => {
    const [signed, signature] = parts[n % parts.length] ?? [];
    if (!signed || !signature || !verify("sha256", signed, key, signature)) throw new Error("bad");
  };
  const ask = async (n: number) => {
    const header = () => `Bearer ${made[n % made.length]}`;
    const { kind } = await check.check({ header, query: "" }, authentication, "shop");
    if (kind !== "allowed") throw new Error("a good token was refused");
  };
  // In turns, so that both see the same machine; the first rounds run code that has not been compiled.
  const costs: [number, number][] = [];
  for (let round = 0; round < 4 * rounds; round++) {
    check = fresh();
    await ask(0);
    costs.push([await costOf(1, 399, bare), await costOf(1, 399, ask)]);
  }
  costs.splice(0, rounds);
  line(
    `OpenSSL's verification, ${algorithm}`,
    quantile(
      costs.map(([own]) => own),
      0.5,
    ),
  );
  const first = quantile(
    costs.map(([, whole]) => whole),
    0.5,
  );
  // A verification of ES256 alone takes more than the aim.
  line(`token, ${algorithm}, first time`, first, algorithm === "RS256" ? 60 : undefined);
  const ratio = quantile(
    costs.map(([own, whole]) => whole / own),
    0.5,
  );
  const verdict = algorithm === "ES256" ? `   aim ≤ 1.20 ${ratio <= 1.2 ? "✔" : "✘"}` : "";
  console.log(
    `${"  as a multiple of OpenSSL's".padEnd(36)} ${ratio.toFixed(2).padStart(9)}${verdict}`,
  );
  line(`token, ${algorithm}, again`, await cost(200, ask), 60);
}

/** Median of the rounds, in microseconds of processor for one call. */
async function cost(calls: number, call: (n: number) => unknown): Promise<number> {
  const each: number[] = [];
  for (let round = 0; round < rounds; round++) each.push(await costOf(round * calls, calls, call));
  return quantile(each, 0.5);
}

async function costOf(first: number, calls: number, call: (n: number) => unknown): Promise<number> {
  const begin = process.cpuUsage();
  for (let n = first; n < first + calls; n++) {
    const result = call(n);
    if (result instanceof Promise) await result;
  }
  const { user, system } = process.cpuUsage(begin);
  return (user + system) / calls;
}

function line(label: string, micros: number, aim?: number): void {
  const verdict = aim === undefined ? "" : `   aim ≤ ${aim} µs ${micros <= aim ? "✔" : "✘"}`;
  console.log(`${label.padEnd(36)} ${micros.toFixed(1).padStart(9)} µs${verdict}`);
}

const dice: Service = {
  metadata: { name: "dice", namespace: "shop" },
  spec: { ports: [{ port: 80 }] },
};
const gateway: IstioGateway = {
  metadata: { name: "g", namespace: "kyma-system" },
  spec: {
    servers: [{ port: { number: 443, name: "s", protocol: "HTTPS" }, hosts: ["*.example.com"] }],
  },
};

function apiRule(n: number): ApiRule {
  const jwt = {
    authentications: [{ issuer: "https://i.example", jwksUri: "https://i.example/k" }],
  };
  return {
    metadata: {
      name: `h${n}`,
      namespace: "shop",
      uid: `u${n}`,
      creationTimestamp: "2026-01-01T00:00:00Z",
    },
    spec: {
      hosts: [`h${n}`],
      gateway: "kyma-system/g",
      service: { name: "dice", port: 80 },
      rules: [
        { path: "/a/{*}/c", methods: ["GET"], jwt },
        { path: "/*", methods: ["GET", "POST"], noAuth: true },
      ],
    },
  };
}

function exposedRule(n: number): ExposedRule {
  const template = [`/a${n}/{*}/c`, `/a${n}/b/c`, `/a${n}/{**}`][n % 3] ?? "";
  return {
    path: { kind: "template", template },
    methods: ["GET"],
    authentication: { kind: "none" },
    target: { namespace: "shop", name: "dice", port: 80, exists: true },
    timeoutMs: 1,
    requestHeaders: {},
    requestCookies: {},
  };
}
