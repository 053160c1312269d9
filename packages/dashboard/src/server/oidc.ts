import { createHash, randomBytes } from "node:crypto";
import { httpsTransport, messageOf, type Transport, transportOrigin } from "@spry/kube";
import { RequestError } from "./http.ts";
import { isSafeUrl } from "./safe-url.ts";

/** The OpenID Connect provider whose ID tokens the API server accepts. */
export interface OidcOptions {
  /** As in the API server's own configuration; HTTPS except on loopback. */
  issuer: string;
  clientId: string;
  /** Undefined for a public client, which PKCE protects alone. */
  clientSecret?: string | undefined;
  /** Besides `openid`. */
  scopes: readonly string[];
  /** PEM; undefined: those that Node.js knows. */
  certificateAuthority?: string | undefined;
  /** The dashboard's own URL, as browsers reach it. */
  url: URL;
}

/** What a browser keeps while its user is at the provider; the server keeps nothing. */
export interface LoginAttempt {
  /** Where the browser goes. */
  url: string;
  state: string;
  verifier: string;
  nonce: string;
}

export interface OidcLogin {
  /** The ID token: the user's credential at the API server. */
  token: string;
  /** Milliseconds since 1970. */
  expires: number;
  /** Present when the provider gives one (scope `offline_access`). */
  refresh?: string;
}

interface Endpoints {
  authorize: URL;
  token: URL;
}

/** The path to which the provider sends browsers back. */
export const callbackPath = "/login/callback";
const timeoutMs = 10_000;
const maxAnswerBytes = 64 * 1024;
/** How long the provider's endpoints are remembered. */
const endpointsMs = 10 * 60_000;

/**
 * Logins at an OpenID Connect provider: authorization code with PKCE (RFC 7636). ID tokens come from the provider's token
 * endpoint over TLS, so their claims are checked here and not their signature (OpenID Connect Core, section 3.1.3.7); the
 * API server checks both with every request.
 */
export class OidcLogins {
  readonly #options: OidcOptions;
  readonly #now: () => number;
  readonly #transports = new Map<string, Transport>();
  #endpoints: { found: Promise<Endpoints>; until: number } | undefined;

  constructor(options: OidcOptions, now: () => number = Date.now) {
    this.#options = options;
    this.#now = now;
  }

  /** For the page: where its users log in. */
  get provider(): string {
    return new URL(this.#options.issuer).host;
  }

  async begin(): Promise<LoginAttempt> {
    const { authorize } = await this.#find();
    const [state = "", verifier = "", nonce = ""] = Array.from({ length: 3 }, () =>
      randomBytes(32).toString("base64url"),
    );
    const { clientId, scopes } = this.#options;
    const url = new URL(authorize);
    const query = {
      response_type: "code",
      client_id: clientId,
      redirect_uri: this.#redirectUri,
      scope: ["openid", ...scopes].join(" "),
      state,
      nonce,
      code_challenge: createHash("sha256").update(verifier).digest("base64url"),
      code_challenge_method: "S256",
      // Without it, a provider that follows the specification gives no refresh token.
      ...(scopes.includes("offline_access") && { prompt: "consent" }),
    };
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return { url: url.href, state, verifier, nonce };
  }

  finish(attempt: { code: string; verifier: string; nonce: string }): Promise<OidcLogin> {
    const { code, verifier, nonce } = attempt;
    const grant = {
      grant_type: "authorization_code",
      code,
      code_verifier: verifier,
      redirect_uri: this.#redirectUri,
    };
    return this.#tokens(grant, nonce);
  }

  renew(refresh: string): Promise<OidcLogin> {
    return this.#tokens({ grant_type: "refresh_token", refresh_token: refresh });
  }

  get #redirectUri(): string {
    return new URL(callbackPath, this.#options.url).href;
  }

  async #tokens(grant: Record<string, string>, nonce?: string): Promise<OidcLogin> {
    const { clientId, clientSecret } = this.#options;
    const { token: endpoint } = await this.#find();
    const basic = [clientId, clientSecret ?? ""].map(encodeURIComponent).join(":");
    const { status, body } = await this.#ask(endpoint, {
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        ...(clientSecret !== undefined && {
          authorization: `Basic ${Buffer.from(basic).toString("base64")}`,
        }),
      },
      body: new URLSearchParams({
        ...grant,
        ...(clientSecret === undefined && { client_id: clientId }),
      }).toString(),
    });
    const { id_token: token, refresh_token: refresh, error, error_description: why } = body;
    if (status !== 200) {
      const reason = [error, why].filter((part) => typeof part === "string").join(": ");
      throw new RequestError(403, `${this.provider} refused the login: ${reason || status}`);
    }
    if (typeof token !== "string")
      throw new RequestError(502, `${this.provider} has sent no ID token`);
    const expires = this.#expiryOf(token, nonce);
    return { token, expires, ...(typeof refresh === "string" && { refresh }) };
  }

  /** Throws a RequestError for a token that was not issued for this dashboard and this login. */
  #expiryOf(token: string, nonce?: string): number {
    const { issuer, clientId } = this.#options;
    const claims = claimsOf(token);
    const isOurs = claims["iss"] === issuer && [claims["aud"]].flat().includes(clientId);
    // After a renewal the provider may leave the nonce out (OpenID Connect Core, section 12.2).
    const isOfThisLogin = nonce === undefined || claims["nonce"] === nonce;
    const { exp } = claims;
    if (!isOurs || !isOfThisLogin || typeof exp !== "number")
      throw new RequestError(403, `${this.provider} has sent an ID token of another login`);
    return exp * 1000;
  }

  #find(): Promise<Endpoints> {
    if (this.#endpoints && this.#endpoints.until > this.#now()) return this.#endpoints.found;
    const found = this.#discover();
    this.#endpoints = { found, until: this.#now() + endpointsMs };
    found.catch(() => (this.#endpoints = undefined));
    return found;
  }

  async #discover(): Promise<Endpoints> {
    const { issuer } = this.#options;
    const at = new URL(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
    const { status, body } = await this.#ask(at, {});
    if (status !== 200 || body["issuer"] !== issuer)
      throw new RequestError(502, `${at.href} does not describe the issuer ${issuer}`);
    const endpoint = (name: string) => {
      const value = body[name];
      const url = typeof value === "string" ? URL.parse(value) : null;
      if (!url || !isSafeUrl(url))
        throw new RequestError(502, `${at.href} has no usable ${name}: HTTPS is required`);
      return url;
    };
    return { authorize: endpoint("authorization_endpoint"), token: endpoint("token_endpoint") };
  }

  async #ask(
    url: URL,
    init: { method?: string; headers?: Record<string, string>; body?: string },
  ): Promise<{ status: number; body: Record<string, unknown> }> {
    try {
      const answer = await this.#transportTo(url)(
        new Request(`${transportOrigin}${url.pathname}${url.search}`, {
          ...init,
          headers: { ...init.headers, accept: "application/json" },
          signal: AbortSignal.timeout(timeoutMs),
        }),
      );
      return { status: answer.status, body: await boundedJson(answer) };
    } catch (error) {
      throw new RequestError(502, `${url.host} cannot be reached: ${messageOf(error)}`);
    }
  }

  #transportTo({ origin }: URL): Transport {
    const { certificateAuthority } = this.#options;
    const known =
      this.#transports.get(origin) ??
      httpsTransport({
        server: origin,
        namespace: "default",
        ...(certificateAuthority !== undefined && { certificateAuthority }),
      });
    this.#transports.set(origin, known);
    return known;
  }
}

function claimsOf(token: string): Record<string, unknown> {
  try {
    const [, payload = ""] = token.split(".");
    return JSON.parse(Buffer.from(payload, "base64url").toString("utf8")) as Record<
      string,
      unknown
    >;
  } catch {
    return {};
  }
}

async function boundedJson(answer: Response): Promise<Record<string, unknown>> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.length;
    if (size > maxAnswerBytes) throw new Error(`its response exceeds ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  const value: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  if (typeof value !== "object" || value === null) throw new Error("its response is not an object");
  return value as Record<string, unknown>;
}
