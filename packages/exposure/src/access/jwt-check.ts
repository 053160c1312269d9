import { hash } from "node:crypto";
import { type Authentication, type TokenAuthentication } from "@spry/function";
import { type Clock, messageOf, systemClock } from "@spry/kube";
import { type Claims, isAuthorized } from "./authorize.ts";
import { type JwksCache, type KeySource, KeysUnavailableError } from "./jwks-cache.ts";
import { isAlgorithm, isSignature } from "./signature.ts";
import { parseToken, type SignedToken } from "./signed-token.ts";
import { tokensFor, type TokenRequest } from "./token-source.ts";

export type JwtDecision =
  | { kind: "allowed"; claims: Claims }
  /** 401: the token is not valid; 403: there is none, or it is not enough (as Istio answers for the original). */
  | { kind: "refused"; status: 401 | 403; reason: string };

/** Clocks differ; Envoy's default. */
const clockSkewSeconds = 60;
/** Tokens whose signature has been found good, and their length together; as many again are on their way out. */
const maxVerified = 2_000;
const maxVerifiedLength = 8 * 1024 * 1024;

/** Keys that a token without an id is tried with: each try takes processor time of all. */
const maxCandidates = 8;

interface Verified {
  claims: Claims;
  version: number;
  /** Of the token. */
  length: number;
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
  // Two generations: a Map that loses its oldest entry again and again becomes slow to walk.
  let verified = new Map<string, Verified>();
  let older = new Map<string, Verified>();

  let length = 0;

  function remember(digest: string, entry: Verified): void {
    if (verified.size >= maxVerified || length > maxVerifiedLength) {
      [older, verified, length] = [verified, new Map(), 0];
    }
    verified.set(digest, entry);
    length += entry.length;
  }

  async function verify(
    token: string,
    parsed: SignedToken,
    issuer: string | undefined,
    source: KeySource,
  ): Promise<Claims | string> {
    const { tenant, uri } = source;
    const what = JSON.stringify([tenant, uri, issuer, token]);
    const digest = hash("sha256", what, "base64");
    const known = verified.get(digest) ?? older.get(digest);
    if (known && known.version === keys.version(source)) {
      if (!verified.has(digest)) remember(digest, known);
      return timeProblem(known.claims) ?? known.claims;
    }
    const { problem, version } = await verifySignature(parsed, source);
    const why = problem ?? timeProblem(parsed.claims);
    if (why !== undefined) return why;
    const { claims } = parsed;
    if (version !== undefined) remember(digest, { claims, version, length: token.length });
    return claims;
  }

  /** With the version of the issuer's keys that it was verified by. A key may have been replaced under its id: then the new one counts. */
  async function verifySignature(
    token: SignedToken,
    source: KeySource,
  ): Promise<{ problem?: string; version?: number | undefined }> {
    const first = await verifyOnce(token, source);
    const { isBad, version } = first;
    if (isBad && (await keys.isRenewed(source, version))) return verifyOnce(token, source);
    return first;
  }

  async function verifyOnce(
    { header, signed, signature }: SignedToken,
    source: KeySource,
  ): Promise<{ problem?: string; version?: number | undefined; isBad?: boolean }> {
    const { alg, kid, isCritical } = header;
    if (!isAlgorithm(alg)) return { problem: "the token's algorithm is not accepted" };
    const candidates = await keys.keysFor(source, { alg, ...(kid === undefined ? {} : { kid }) });
    const version = keys.version(source);
    if (candidates.length === 0) return { problem: "the token's key is not one of the issuer's" };
    // Nothing that a header may demand of its readers is known here (RFC 7515, section 4.1.11).
    const problem = "the token's signature is not valid";
    if (isCritical) return { problem };
    for (const { key } of candidates.slice(0, maxCandidates))
      if (key && (await isSignature(alg, key, signed, signature))) return { version };
    return { problem, version, isBad: true };
  }

  function timeProblem({ exp, nbf, iat }: Claims): string | undefined {
    const isTime = (value: unknown) => value === undefined || typeof value === "number";
    if (!isTime(exp) || !isTime(nbf) || !isTime(iat)) return "the token's times are not numbers";
    const now = Math.floor(clock.now() / 1_000);
    if (typeof exp === "number" && exp <= now - clockSkewSeconds) return "the token has expired";
    if (typeof nbf === "number" && nbf > now + clockSkewSeconds)
      return "the token is not valid yet";
    return undefined;
  }

  /** The claims of a token of this issuer, or why it is not one. */
  async function claimsOf(
    token: string,
    { issuer, jwksUri: uri }: TokenAuthentication,
    tenant: string,
  ): Promise<Claims | string> {
    const parsed = parseToken(token);
    if (!parsed) return "the token is malformed";
    const { iss } = parsed.claims;
    if (issuer !== undefined && iss !== issuer)
      return iss === undefined
        ? "the token names no issuer"
        : "the token's issuer is not configured";
    return verify(token, parsed, issuer, { tenant, uri }).catch((error: unknown) => {
      if (error instanceof KeysUnavailableError) return "the issuer's keys are not available";
      return `the token could not be checked: ${messageOf(error)}`;
    });
  }

  /** The same for several issuers whose tokens may be at this place: one of them has to accept it. */
  async function claimsByAny(
    token: string,
    authentications: readonly TokenAuthentication[],
    tenant: string,
  ): Promise<Claims | string> {
    let reason: string | undefined;
    for (const authentication of authentications) {
      const claims = await claimsOf(token, authentication, tenant);
      if (typeof claims !== "string") return claims;
      if (reason === undefined || !isOfAnother(claims)) reason = claims;
    }
    return reason ?? "the token's issuer is not accepted here";
  }

  return {
    async check(request, { authentications, authorizations, withoutToken = 403 }, tenant) {
      // By place: an issuer's token counts only where that issuer's tokens are expected.
      const found = new Map<string, { text: string; by: TokenAuthentication[] }>();
      for (const authentication of authentications)
        for (const { place, text } of tokensFor(authentication, request)) {
          const key = `${place}\n${text}`;
          found.set(key, { text, by: [...(found.get(key)?.by ?? []), authentication] });
        }
      // A text that is too long to be read does not count as a token, but none passes alongside a good one.
      if ([...found.values()].every(({ text }) => text === ""))
        return refused(withoutToken, "the request has no token");
      const all: Claims[] = [];
      // The Service may read any of them, also where each is of another issuer.
      for (const { text, by } of found.values()) {
        const claims = await claimsByAny(text, by, tenant);
        if (typeof claims === "string") return refused(401, claims);
        all.push(claims);
      }
      const [claims] = all;
      if (claims && all.every((each) => isAuthorized(each, authorizations)))
        return { kind: "allowed", claims };
      return refused(403, "the token lacks a scope or an audience");
    },
  };
}

/** Of several issuers, the one that has issued the token says best what is wrong with it. */
const isOfAnother = (reason: string) =>
  / malformed$| names no issuer$| not configured$/.test(reason);
