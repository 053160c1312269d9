/** Program: issues what is missing or about to expire in the directory given. See certificates.ts. */
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type Authority, issueLeaf, newAuthority, readAuthority } from "../x509.ts";

const day = 24 * 3600 * 1000;
const caDays = 3650;
const leafDays = 365;

type Names = NonNullable<Parameters<typeof issueLeaf>[1]["names"]>;

const loopback: Names = [
  { type: "dns", value: "localhost" },
  { type: "ip", value: "127.0.0.1" },
  { type: "ip", value: "::1" },
];

/** What each certificate is for; the common name of a client is its user, the organisation its group. */
const leaves: Record<string, { subject: string; names?: Names }> = {
  apiServer: {
    subject: "CN=kube-apiserver",
    names: [
      ...loopback,
      { type: "dns", value: "kubernetes" },
      { type: "dns", value: "kubernetes.default" },
      { type: "dns", value: "kubernetes.default.svc" },
      { type: "dns", value: "kubernetes.default.svc.cluster.local" },
      { type: "ip", value: "10.96.0.1" },
    ],
  },
  webhook: {
    subject: "CN=serverless-webhook.kyma-system.svc",
    names: [...loopback, { type: "dns", value: "serverless-webhook.kyma-system.svc" }],
  },
  admin: { subject: "CN=admin, O=system:masters" },
  gateway: { subject: "CN=spry:gateway, O=system:masters" },
};

async function main(dir: string): Promise<void> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const authority = await loadAuthority(dir);
  for (const [name, leaf] of Object.entries(leaves)) {
    const validity = { now: Date.now(), lifetimeMs: leafDays * day };
    store(dir, name, await issueLeaf(authority, { ...leaf, ...validity }));
  }
}

/** The authority in the directory, or a new one: clients that trust it go on working after a renewal. */
async function loadAuthority(dir: string): Promise<Authority> {
  const file = path.join(dir, "ca.crt");
  if (existsSync(file)) {
    const key = readFileSync(path.join(dir, "ca.key"), "utf8");
    const authority = await readAuthority(readFileSync(file, "utf8"), key);
    if (authority.certificate.notAfter.getTime() - Date.now() > leafDays * day) return authority;
  }
  const made = await newAuthority("CN=spry", { now: Date.now(), lifetimeMs: caDays * day });
  store(dir, "ca", { cert: made.cert, key: made.keyPem });
  return made;
}

function store(dir: string, name: string, { cert, key }: { cert: string; key: string }): void {
  write(path.join(dir, `${name}.key`), key);
  write(path.join(dir, `${name}.crt`), cert);
}

function write(file: string, content: string): void {
  writeFileSync(`${file}.new`, `${content.trim()}\n`, { mode: 0o600 });
  chmodSync(`${file}.new`, 0o600);
  renameSync(`${file}.new`, file);
}

await main(process.argv[2] ?? ".");
