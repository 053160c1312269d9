import { X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";
import { type HostCertificate, ownCertificatePrefix } from "@spry/function";
import { type Logger, messageOf, type Secret } from "@spry/kube";

interface Pair {
  crt: string;
  key: string;
  /** Made when a client first asks for it. */
  context: SecureContext | undefined;
}

/** What Mozilla's "intermediate" lists for TLS 1.2; TLS 1.3 has its own, and there is nothing older. */
const ciphers = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
].join(":");
export const tlsSettings = { minVersion: "TLSv1.2", ciphers, honorCipherOrder: true } as const;

/** The certificates of exposed hosts, as the Secret of collected certificates has them; a change counts at once. */
export class Certificates {
  readonly #log: Logger;
  #pairs = new Map<string, Pair>();
  /** Of certificates by the platform's own authority: from the names in them. */
  #own = new Map<string, Pair>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Replaces all of them; those that have not changed keep what is made of them. */
  use(secret: Secret | undefined): void {
    const before = this.#pairs;
    this.#pairs = new Map();
    this.#own = new Map();
    const data = secret?.data ?? {};
    for (const [entry, encoded] of Object.entries(data)) {
      if (!entry.endsWith(".crt")) continue;
      const name = entry.slice(0, -".crt".length);
      const crt = Buffer.from(encoded, "base64").toString();
      const key = Buffer.from(data[`${name}.key`] ?? "", "base64").toString();
      const known = before.get(name);
      const isSame = known?.crt === crt && known.key === key;
      const pair = isSame ? known : { crt, key, context: undefined };
      this.#pairs.set(name, pair);
      // Those of Gateways have the namespace and a dot in front.
      if (name.startsWith(ownCertificatePrefix) && !name.includes("."))
        for (const host of this.#namesOf(name, crt)) this.#own.set(host, pair);
    }
  }

  /** For a host of the table; undefined if there is none that can be served. */
  find(host: string, certificate: HostCertificate): SecureContext | undefined {
    if (certificate.kind === "missing") return undefined;
    const pair =
      certificate.kind === "own" ? this.#own.get(host) : this.#pairs.get(certificate.name);
    if (!pair) return undefined;
    try {
      const { crt: cert, key } = pair;
      return (pair.context ??= createSecureContext({ cert, key, ...tlsSettings }));
    } catch (error) {
      this.#log.warn({ host, error: messageOf(error) }, "a certificate cannot be used");
      return undefined;
    }
  }

  #namesOf(name: string, crt: string): string[] {
    try {
      const { subjectAltName = "" } = new X509Certificate(crt);
      return subjectAltName
        .split(", ")
        .flatMap((each) => (each.startsWith("DNS:") ? each.slice("DNS:".length) : []));
    } catch (error) {
      this.#log.warn({ name, error: messageOf(error) }, "a certificate cannot be read");
      return [];
    }
  }
}
