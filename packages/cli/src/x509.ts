/** Issues certificates: an authority, and what it signs. ECDSA on P-256 throughout. */
import "reflect-metadata";
import * as x509 from "@peculiar/x509";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
/** Clocks differ, and may be set back: certificates count from a day before now. */
const skewMs = 86_400_000;

export interface Authority {
  /** PEM. */
  cert: string;
  /** PEM, PKCS #8. */
  keyPem: string;
  readonly certificate: x509.X509Certificate;
  readonly key: CryptoKey;
}

interface Validity {
  /** Milliseconds since 1970. */
  now: number;
  lifetimeMs: number;
}

/** @param domains what it may sign certificates for, these and the names below (RFC 5280, section 4.2.1.10); default: anything */
export async function newAuthority(
  subject: string,
  validity: Validity,
  domains?: readonly string[],
): Promise<Authority> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: subject,
    ...period(validity),
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
      ...(domains ? [new x509.Extension(nameConstraints, true, permitted(domains))] : []),
    ],
  });
  const keyPem = await pemOf(keys.privateKey);
  return { cert: certificateText(certificate), keyPem, certificate, key: keys.privateKey };
}

const nameConstraints = "2.5.29.30";

/** NameConstraints with permitted DNS names alone, in DER. */
function permitted(domains: readonly string[]): ArrayBuffer {
  const wrap = (tag: number, ...parts: Uint8Array[]) => {
    const content = Buffer.concat(parts);
    if (content.length > 127) throw new Error("too many domains for a short length in DER");
    return Buffer.concat([Buffer.from([tag, content.length]), content]);
  };
  const subtrees = domains.map((domain) => wrap(0x30, wrap(0x82, Buffer.from(domain, "ascii"))));
  return new Uint8Array(wrap(0x30, wrap(0xa0, ...subtrees))).buffer;
}

/** The first certificate of a PEM text, with its key. */
export async function readAuthority(cert: string, keyPem: string): Promise<Authority> {
  const der = x509.PemConverter.decodeFirst(keyPem);
  const key = await crypto.subtle.importKey("pkcs8", der, algorithm, true, ["sign"]);
  const certificate = new x509.X509Certificate(x509.PemConverter.decodeFirst(cert));
  return { cert, keyPem, certificate, key };
}

/** With names it is a server's, without a client's. */
export async function issueLeaf(
  authority: Authority,
  leaf: Validity & { subject: string; names?: x509.JsonGeneralNames },
): Promise<{ cert: string; key: string }> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const usage = leaf.names ? x509.ExtendedKeyUsage.serverAuth : x509.ExtendedKeyUsage.clientAuth;
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: leaf.subject,
    issuer: authority.certificate.subject,
    ...period(leaf),
    publicKey: keys.publicKey,
    signingKey: authority.key,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([usage]),
      ...(leaf.names ? [new x509.SubjectAlternativeNameExtension(leaf.names)] : []),
    ],
  });
  return { cert: certificateText(certificate), key: await pemOf(keys.privateKey) };
}

function period({ now, lifetimeMs }: Validity): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(now - skewMs), notAfter: new Date(now + lifetimeMs) };
}

const certificateText = (certificate: x509.X509Certificate): string =>
  `${certificate.toString("pem").trim()}\n`;

async function pemOf(key: CryptoKey): Promise<string> {
  const pkcs8 = await crypto.subtle.exportKey("pkcs8", key);
  return `${x509.PemConverter.encode(pkcs8, "PRIVATE KEY").trim()}\n`;
}

/** 127 random bits: positive in DER, and impossible to guess (CA/Browser Forum, section 7.1). */
function serialNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = (bytes[0] ?? 0) & 0x7f;
  return Buffer.from(bytes).toString("hex");
}
