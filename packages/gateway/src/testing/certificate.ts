/** For the tests of this room: self-signed certificates of a host. */
import "reflect-metadata";
import * as x509 from "@peculiar/x509";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const dayMs = 86_400_000;

/** PEM, valid for two days. */
export async function certificateFor(host: string): Promise<{ crt: string; key: string }> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=test",
    notBefore: new Date(Date.now() - dayMs),
    notAfter: new Date(Date.now() + 2 * dayMs),
    keys,
    signingAlgorithm: algorithm,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: "dns", value: host }])],
  });
  const key = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return { crt: certificate.toString("pem"), key: x509.PemConverter.encode(key, "PRIVATE KEY") };
}
