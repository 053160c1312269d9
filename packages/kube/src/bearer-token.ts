import { createHash, timingSafeEqual } from "node:crypto";

/** The token of a header `Authorization: Bearer <token>` (RFC 6750 section 2.1); undefined without one, or beyond 512 characters. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return /^Bearer ([\w.~+/-]{1,512}=*)$/i.exec(authorization ?? "")?.[1];
}

/** Compares two secrets in a time that says nothing about either. */
export function isSameSecret(one: string, other: string): boolean {
  return timingSafeEqual(digest(one), digest(other));
}

/** Of one length, whatever was given: the comparison says nothing about the secret's. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
