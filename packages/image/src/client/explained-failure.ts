/** Why a registry cannot be spoken to, where the system's own words do not lead to the way out. */
import { isLoopback } from "../image-name.ts";

/** Codes of OpenSSL and Node.js for a chain that ends at an authority which is not among the known ones. */
const unknownAuthority = new Set([
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
]);

/** The cause of a failed exchange, in words; itself where those are clear. */
export function explainedFailure(cause: unknown, url: URL): unknown {
  if (!(cause instanceof Error)) return cause;
  const { code = "", message } = cause as NodeJS.ErrnoException;
  if (unknownAuthority.has(code))
    return new Error(
      `the certificate of ${url.host} is from an authority that is not known here (${firstClause(message)}): name that authority's certificate: ` +
        "with --registry-ca FILE for spry install, spry build and npm run images, with registryCertificateAuthority in the values of " +
        "an installation, or with the key ca.crt in the Secret of a registry",
      { cause },
    );
  if (url.protocol === "https:" && (code === "EPROTO" || code === "ERR_SSL_WRONG_VERSION_NUMBER"))
    return new Error(
      `${url.host} does not speak TLS (${firstLine(message)}): for HTTP without TLS name it with --plain, or in plainRegistries of the values`,
      { cause },
    );
  if (url.protocol === "http:" && (code.startsWith("HPE_") || code === "ECONNRESET"))
    return new Error(`${message}: ${plainToTls(url)}`, { cause });
  return cause;
}

/** Of a server that expects TLS, or seems to. */
export function plainToTls(url: URL): string {
  const why = isLoopback(url.host)
    ? "registries on loopback are always spoken to without TLS: use the machine's name or another of its addresses if this one expects TLS"
    : "it was named as one without TLS: leave --plain and plainRegistries out if it expects TLS";
  return `${url.host} was spoken to over HTTP without TLS; ${why}`;
}

const firstLine = (text: string): string => text.split("\n", 1)[0] ?? "";
/** What Node.js adds is advice for its own command line. */
const firstClause = (text: string): string => text.split("; ", 1)[0] ?? "";
