/** A token in the compact form (RFC 7515, section 7.1), taken apart; nothing of it is verified. */
export interface SignedToken {
  header: { alg: string; kid: string | undefined; isCritical: boolean };
  claims: Readonly<Record<string, unknown>>;
  /** What the signature is of. */
  signed: Buffer;
  signature: Buffer;
}

/** Base64url without padding. Node's own decoder passes over what is not. */
const compact = /^[\w-]+\.[\w-]+\.[\w-]*$/;

/** Undefined if the text is not a token whose header and claims are objects. */
export function parseToken(token: string): SignedToken | undefined {
  if (!compact.test(token)) return undefined;
  const first = token.indexOf(".");
  const last = token.lastIndexOf(".");
  const header = objectOf(token.slice(0, first));
  const claims = objectOf(token.slice(first + 1, last));
  if (!header || !claims) return undefined;
  const { alg, kid, crit } = header;
  return {
    header: {
      alg: typeof alg === "string" ? alg : "",
      kid: typeof kid === "string" ? kid : undefined,
      isCritical: crit !== undefined,
    },
    claims,
    signed: Buffer.from(token.slice(0, last), "latin1"),
    signature: Buffer.from(token.slice(last + 1), "base64url"),
  };
}

function objectOf(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString());
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
