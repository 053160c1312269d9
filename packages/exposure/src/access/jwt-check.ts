import { createHash } from "node:crypto";
import { type Authentication } from "@spry/function";
import { type Clock, systemClock } from "@spry/kube";
import { decodeJwt, decodeProtectedHeader, jwtVerify } from "jose";
import { type Claims, isAuthorized } from "./authorize.ts";
import { type JwksCache, type KeySource, KeysUnavailableError } from "./jwks-cache.ts";
import { tokenFor, type TokenRequest } from "./token-source.ts";

export type JwtDecision =
  | { kind: "allowed"; claims: Claims }
  /** 401: the token is not valid; 403: there is none, or it is not enough (as Istio answers for the original). */
  | { kind: "refused"; status: 401 | 403; reason: string };

/** Signatures by a private key only: a public key can never be used as a shared secret (RFC 8725, section 3.1). */
export const algorithms = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
];
/** Clocks differ; Envoy's default. */
const clockSkewSeconds = 60;
/** Tokens whose signature has been found good, by their digest. */
const maxVerified = 2_000;

interface Verified {
  claims: Claims;
  version: number | undefined;
}

export interface JwtCheck {
  /** @param tenant the namespace of the APIRule */
  check(
    request: TokenRequest,
    authentication: Extract<Authentication, { kind: "jwt" }>,
    tenant: string,
  ): Promise<JwtDecision>;
}

const refused = (status: 401 | 403, reason: string): JwtDecision => ({
  kind: "refused",
  status,
  reason,
});

/** Decides whether a request's token lets it pass. Reasons are for the access log: they have no part of a token. */
export function createJwtCheck(options: { keys: JwksCache; clock?: Clock }): JwtCheck {
  const { keys, clock = systemClock } = options;
  const verified = new Map<string, Verified>();

  async function verify(
    token: string,
    issuer: string | undefined,
    source: KeySource,
  ): Promise<Claims | string> {
    const { tenant, uri } = source;
    const what = JSON.stringify([tenant, uri, issuer, token]);
    const digest = createHash("sha256").update(what).digest("base64");
    const known = verified.get(digest);
    const version = keys.version(source);
    if (known && version !== undefined && known.version === version)
      return timeProblem(known.claims) ?? known.claims;
    verified.delete(digest);
    const claims = await verifySignature(token, issuer, source);
    if (typeof claims === "string") return claims;
    verified.set(digest, { claims, version: keys.version(source) });
    const [oldest] = verified.keys();
    if (verified.size > maxVerified && oldest !== undefined) verified.delete(oldest);
    return claims;
  }

  async function verifySignature(token: string, issuer: string | undefined, source: KeySource) {
    const { alg = "", kid } = decodeProtectedHeader(token);
    if (!algorithms.includes(alg)) return "the token's algorithm is not accepted";
    const candidates = await keys.keysFor(source, {
      alg,
      ...(typeof kid === "string" ? { kid } : {}),
    });
    if (candidates.length === 0) return "the token's key is not one of the issuer's";
    for (const candidate of candidates) {
      try {
        const { payload } = await jwtVerify(token, await candidate.keyFor(alg), {
          algorithms: [alg],
          ...(issuer === undefined ? {} : { issuer }),
          clockTolerance: clockSkewSeconds,
          currentDate: new Date(clock.now()),
        });
        return payload as Claims;
      } catch (error) {
        const { code = "" } = error as { code?: string };
        if (code === "ERR_JWT_EXPIRED") return "the token has expired";
        if (code === "ERR_JWT_CLAIM_VALIDATION_FAILED")
          return "the token is not valid now, or not this issuer's";
      }
    }
    return "the token's signature is not valid";
  }

  /** As the library's check of the first time. */
  function timeProblem({ exp, nbf }: Claims): string | undefined {
    const now = Math.floor(clock.now() / 1_000);
    if (typeof exp === "number" && exp <= now - clockSkewSeconds) return "the token has expired";
    if (typeof nbf === "number" && nbf > now + clockSkewSeconds)
      return "the token is not valid yet";
    return undefined;
  }

  return {
    async check(request, { authentications, authorizations, withoutToken = 403 }, tenant) {
      let reason: string | undefined;
      for (const authentication of authentications) {
        const token = tokenFor(authentication, request);
        if (token === undefined) continue;
        const { issuer, jwksUri: uri } = authentication;
        const named = issuerOf(token);
        if (issuer !== undefined && named !== issuer) {
          reason ??=
            named === undefined
              ? "the token is malformed, or names no issuer"
              : "the token's issuer is not configured";
          continue;
        }
        const claims = await verify(token, issuer, { tenant, uri }).catch((error: unknown) => {
          if (error instanceof KeysUnavailableError) return "the issuer's keys are not available";
          return "the token is malformed";
        });
        if (typeof claims === "string") {
          reason = claims;
          continue;
        }
        if (isAuthorized(claims, authorizations)) return { kind: "allowed", claims };
        return refused(403, "the token lacks a scope or an audience");
      }
      return reason === undefined
        ? refused(withoutToken, "the request has no token")
        : refused(401, reason);
    },
  };
}

/** Unverified: it only decides whose keys the token is verified with. */
function issuerOf(token: string): string | undefined {
  try {
    return decodeJwt(token).iss;
  } catch {
    return undefined;
  }
}
