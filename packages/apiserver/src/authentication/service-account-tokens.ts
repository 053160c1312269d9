import { createHash, randomUUID } from "node:crypto";
import { type Clock } from "@spry/kube";
import { CompactSign, compactVerify } from "jose";
import { type UserInfo } from "../request.ts";
import { type Store } from "../store/store.ts";
import { type BoundClaims, boundUser, isBound } from "./bound-claims.ts";
import { InvalidTokenError } from "./invalid-token-error.ts";
import { issuer } from "./issuer.ts";
import { isLegacy, type LegacyClaims, legacyIssuer, legacyUser } from "./legacy-claims.ts";
import { type SigningKey } from "./signing-key.ts";

export interface VerifiedToken {
  user: UserInfo;
  /** Of the audiences that were asked for, those that the token is for. */
  audiences: string[];
}

const algorithm = "ES256";
const maxTokenLength = 16 * 1024;
const maxCached = 1024;
/** Clocks of two machines may differ so much. */
const leewaySeconds = 60;

/**
 * Issues and checks the tokens of ServiceAccounts: signed JSON Web Tokens. A token is good only while
 * its ServiceAccount, and the object that it is bound to, are there with the same uid; that is looked up
 * each time, only the signature's check is remembered.
 */
export class ServiceAccountTokens {
  readonly #store: Store;
  readonly #key: SigningKey;
  readonly #clock: Clock;
  /** The latest time that this server has seen, in seconds. */
  #latest = 0;
  /** Digest of a token → its claims; the oldest goes first. */
  readonly #verified = new Map<string, Record<string, unknown>>();

  constructor(store: Store, key: SigningKey, clock: Clock) {
    this.#store = store;
    this.#key = key;
    this.#clock = clock;
  }

  /** A token bound in time, and perhaps to an object. */
  async issue(
    claims: Pick<BoundClaims, "sub" | "aud" | "kubernetes.io">,
    expirationSeconds: number,
  ): Promise<string> {
    const now = this.#now();
    return this.#signed({
      aud: claims.aud,
      exp: now + expirationSeconds,
      iat: now,
      iss: issuer,
      jti: randomUUID(),
      "kubernetes.io": claims["kubernetes.io"],
      nbf: now,
      sub: claims.sub,
    });
  }

  /** A token without end, which lives in a Secret. */
  async issueLegacy(claims: Omit<LegacyClaims, "iss">): Promise<string> {
    return this.#signed({ iss: legacyIssuer, ...claims });
  }

  /** Throws an `InvalidTokenError`. Without audiences: the API server's own. */
  async verify(token: string, audiences: readonly string[] = []): Promise<VerifiedToken> {
    const wanted = audiences.length > 0 ? audiences : [issuer];
    const claims = await this.#claimsOf(token);
    if (isLegacy(claims)) {
      // These are from before there were audiences.
      const user = legacyUser(this.#store, claims, token);
      return { user, audiences: audiences.length > 0 ? [] : [issuer] };
    }
    if (!isBound(claims)) throw new InvalidTokenError();
    const meant = wanted.filter((each) => claims.aud.includes(each));
    if (meant.length === 0) {
      const list = (all: readonly string[]) =>
        `[${all.map((each) => JSON.stringify(each)).join(" ")}]`;
      throw new InvalidTokenError(
        `token audiences ${list(claims.aud)} is invalid for the target audiences ${list(wanted)}`,
      );
    }
    const now = this.#now();
    if (now > claims.exp + leewaySeconds) {
      throw new InvalidTokenError("service account token has expired");
    }
    // It was issued in this server's past if that has been so late: the machine's clock has been set back since.
    if (Math.max(now, this.#latest) < claims.nbf - leewaySeconds) {
      throw new InvalidTokenError("service account token is not valid yet");
    }
    return { user: boundUser(this.#store, claims, now), audiences: meant };
  }

  /** The public key as a JSON Web Key (RFC 7517). */
  publicKeys(): object {
    const { crv, x, y } = this.#key.publicKey.export({ format: "jwk" });
    return { keys: [{ use: "sig", kty: "EC", kid: this.#key.id, crv, alg: algorithm, x, y }] };
  }

  #now(): number {
    const now = Math.floor(this.#clock.now() / 1000);
    this.#latest = Math.max(this.#latest, now);
    return now;
  }

  #signed(claims: object): Promise<string> {
    return new CompactSign(Buffer.from(JSON.stringify(claims)))
      .setProtectedHeader({ alg: algorithm, kid: this.#key.id })
      .sign(this.#key.privateKey);
  }

  async #claimsOf(token: string): Promise<Record<string, unknown>> {
    if (token.length > maxTokenLength) throw new InvalidTokenError();
    const digest = createHash("sha256").update(token).digest("base64");
    const known = this.#verified.get(digest);
    if (known) return known;
    let claims: unknown;
    try {
      const { payload } = await compactVerify(token, this.#key.publicKey, {
        algorithms: [algorithm],
      });
      claims = JSON.parse(Buffer.from(payload).toString());
    } catch {
      throw new InvalidTokenError();
    }
    if (typeof claims !== "object" || claims === null) throw new InvalidTokenError();
    if (this.#verified.size >= maxCached) {
      for (const [oldest] of this.#verified) {
        this.#verified.delete(oldest);
        break;
      }
    }
    this.#verified.set(digest, claims as Record<string, unknown>);
    return claims as Record<string, unknown>;
  }
}
