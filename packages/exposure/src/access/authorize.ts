import { type JwtAuthorization } from "@spry/function";

/** The claims of a token that has been verified. */
export type Claims = Readonly<Record<string, unknown>>;

/** Where issuers put scopes; those that are required must all be in the same one (`defaultScopeKeys` of the original). */
const scopeClaims = ["scp", "scope", "scopes"];

/**
 * Whether the claims of a verified token are enough: one of the authorizations must hold, with all of its scopes and all
 * of its audiences. Without authorizations, every valid token is.
 */
export function isAuthorized(claims: Claims, authorizations: readonly JwtAuthorization[]): boolean {
  if (authorizations.length === 0) return true;
  return authorizations.some(({ requiredScopes = [], audiences = [] }) => {
    const scopes = scopeClaims.map((name) => scopesOf(claims[name]));
    const hasScopes =
      requiredScopes.length === 0 || scopes.some((values) => hasAll(values, requiredScopes));
    return hasScopes && hasAll(textsOf(claims["aud"]), audiences);
  });
}

function hasAll(values: readonly string[], required: readonly string[]): boolean {
  return required.every((each) => values.some((value) => matches(value, each)));
}

/** Istio's conditions: `*` is any value, `a*` and `*a` a beginning and an end. */
function matches(value: string, required: string): boolean {
  if (required === "*") return value !== "";
  if (required.startsWith("*")) return value.endsWith(required.slice(1));
  if (required.endsWith("*")) return value.startsWith(required.slice(0, -1));
  return value === required;
}

/** A list of texts, or a text with spaces between (RFC 8693, section 4.2). */
function scopesOf(claim: unknown): string[] {
  return typeof claim === "string" ? claim.split(" ").filter(Boolean) : textsOf(claim);
}

/** A text, or a list of texts. Spaces are part of an audience (RFC 7519, section 4.1.3). */
function textsOf(claim: unknown): string[] {
  const values: unknown[] = Array.isArray(claim) ? claim : [claim];
  return values.filter((each): each is string => typeof each === "string");
}
