/** Program: issues what is missing or about to expire in the directory given. See certificates.ts. */
import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const day = 24 * 3600 * 1000;
const caDays = 3650;
const leafDays = 365;

const loopback: x509.JsonGeneralNames = [
  { type: "dns", value: "localhost" },
  { type: "ip", value: "127.0.0.1" },
  { type: "ip", value: "::1" },
];

/** What each certificate is for; the common name of a client is its user, the organisation its group. */
const leaves: Record<string, { subject: string; names?: x509.JsonGeneralNames }> = {
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
    const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject: leaf.subject,
      issuer: authority.certificate.subject,
      notBefore: new Date(Date.now() - 300_000),
      notAfter: new Date(Date.now() + leafDays * day),
      publicKey: keys.publicKey,
      signingKey: authority.key,
      signingAlgorithm: algorithm,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([
          leaf.names ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth,
        ]),
        ...(leaf.names ? [new x509.SubjectAlternativeNameExtension(leaf.names)] : []),
      ],
    });
    await store(dir, name, certificate, keys.privateKey);
  }
}

/** The authority in the directory, or a new one: clients that trust it go on working after a renewal. */
async function loadAuthority(
  dir: string,
): Promise<{ certificate: x509.X509Certificate; key: CryptoKey }> {
  const file = path.join(dir, "ca.crt");
  if (existsSync(file)) {
    const certificate = new x509.X509Certificate(readFileSync(file, "utf8"));
    if (certificate.notAfter.getTime() - Date.now() > leafDays * day) {
      const der = x509.PemConverter.decodeFirst(readFileSync(path.join(dir, "ca.key"), "utf8"));
      return {
        certificate,
        key: await crypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]),
      };
    }
  }
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: "CN=spry",
    notBefore: new Date(Date.now() - 300_000),
    notAfter: new Date(Date.now() + caDays * day),
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
    ],
  });
  await store(dir, "ca", certificate, keys.privateKey);
  return { certificate, key: keys.privateKey };
}

async function store(
  dir: string,
  name: string,
  certificate: x509.X509Certificate,
  key: CryptoKey,
): Promise<void> {
  const pkcs8 = await crypto.subtle.exportKey("pkcs8", key);
  write(path.join(dir, `${name}.key`), x509.PemConverter.encode(pkcs8, "PRIVATE KEY"));
  write(path.join(dir, `${name}.crt`), certificate.toString("pem"));
}

function write(file: string, content: string): void {
  writeFileSync(`${file}.new`, `${content.trim()}\n`, { mode: 0o600 });
  chmodSync(`${file}.new`, 0o600);
  renameSync(`${file}.new`, file);
}

/** 127 random bits: positive in DER, and nobody can guess the next (CA/Browser Forum, section 7.1). */
function serialNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = (bytes[0] ?? 0) & 0x7f;
  return Buffer.from(bytes).toString("hex");
}

await main(process.argv[2] ?? ".");
