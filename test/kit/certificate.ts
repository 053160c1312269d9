import "reflect-metadata";
import * as x509 from "@peculiar/x509";

export interface KeyPair {
  crt: string;
  key: string;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const dayMs = 86_400_000;

/** A self-signed certificate of a host (or several) and its key, PEM, valid from a week ago until `days` from now, which may be past. */
export async function certificateFor(host: string | readonly string[], days = 2): Promise<KeyPair> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const names = [host].flat().map((value) => ({
    type: /^[\d.]+$/.test(value) ? ("ip" as const) : ("dns" as const),
    value,
  }));
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=test",
    notBefore: new Date(Date.now() - 7 * dayMs),
    notAfter: new Date(Date.now() + days * dayMs),
    keys,
    signingAlgorithm: algorithm,
    extensions: [new x509.SubjectAlternativeNameExtension(names)],
  });
  const key = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { crt: certificate.toString("pem"), key: x509.PemConverter.encode(key, "PRIVATE KEY") };
}
