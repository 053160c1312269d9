/** Program: issues what is missing or about to expire in the directory given. See certificates.ts. */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { certificateProblem, isComplete } from "./certificates.ts";
import { certificateFolders, type CertificateName, subjects } from "./certificate-subjects.ts";
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

/** Of servers: what they answer to. */
const serverNames: Partial<Record<CertificateName, Names>> = {
  apiServer: [
    ...loopback,
    { type: "dns", value: "kubernetes" },
    { type: "dns", value: "kubernetes.default" },
    { type: "dns", value: "kubernetes.default.svc" },
    { type: "dns", value: "kubernetes.default.svc.cluster.local" },
    { type: "ip", value: "10.96.0.1" },
  ],
  events: [...loopback, { type: "dns", value: subjects.events.commonName }],
  webhook: [...loopback, { type: "dns", value: subjects.webhook.commonName }],
};

async function main(dir: string): Promise<void> {
  for (const [folder, names] of Object.entries(certificateFolders))
    if (!isComplete(dir, folder)) await issue(path.join(dir, folder), names);
}

async function issue(dir: string, certificates: readonly CertificateName[]): Promise<void> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const authority = await loadAuthority(dir);
  for (const name of certificates) {
    const { commonName, organisations } = subjects[name];
    const subject = [`CN=${commonName}`, ...organisations.map((each) => `O=${each}`)].join(", ");
    const names = serverNames[name];
    const validity = { now: Date.now(), lifetimeMs: leafDays * day };
    store(dir, name, await issueLeaf(authority, { subject, ...validity, ...(names && { names }) }));
  }
}

/** The authority in the directory, or a new one: clients that trust it keep working after a renewal. */
async function loadAuthority(dir: string): Promise<Authority> {
  const file = path.join(dir, "ca.crt");
  if (certificateProblem(dir, "ca") === undefined) {
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
