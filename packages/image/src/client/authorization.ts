import { type OutboundGuard } from "@spry/kube";
import { isLoopback } from "../image-name.ts";
import { type HttpRequest, readAll, send } from "./http.ts";
import { ImageError, parseJson } from "./image-error.ts";
import { RegistryError } from "./registry-error.ts";

/** An identity at a registry: a password, or the result of an earlier sign-in there. */
export type Credentials =
  | { username: string; password: string }
  /** A refresh token: the registry's authorization service gives access for it. */
  | { identityToken: string };

/** What a registry asks for in `WWW-Authenticate`. */
export interface Challenge {
  scheme: string;
  parameters: Record<string, string>;
}

/** Reads `Bearer realm="…",service="…"`; more than one challenge: the first that we speak. */
export function parseChallenge(header: string): Challenge | undefined {
  const start = /\b(bearer|basic)\b\s*/i.exec(header.slice(0, 4096));
  if (!start) return undefined;
  const parameters: Record<string, string> = {};
  const rest = header.slice(start.index + start[0].length, 4096);
  for (const [, key = "", quoted, plain] of rest.matchAll(/([a-z_]+)=(?:"([^"]*)"|([^\s,]+))/gi))
    parameters[key.toLowerCase()] ??= quoted ?? plain ?? "";
  return { scheme: (start[1] ?? "").toLowerCase(), parameters };
}

/** Undefined when there is no password. */
export function basicAuthorization(credentials: Credentials | undefined): string | undefined {
  if (!credentials || "identityToken" in credentials) return undefined;
  const { username, password } = credentials;
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

/** How the authorization service of a registry is reached. */
export interface TokenWay {
  /** The registry's own. */
  origin: string;
  certificates?: ((host: string) => string | undefined) | undefined;
  guard?: OutboundGuard | undefined;
}

/**
 * Gets a token for scopes, by the protocols that the distribution project documents: "Token Authentication
 * Specification" with a password or with nothing, "OAuth2 Token Authentication" (grant `refresh_token`) with an identity token.
 */
export async function fetchToken(
  challenge: Challenge,
  scopes: readonly string[],
  credentials: Credentials | undefined,
  { origin, certificates, guard }: TokenWay,
): Promise<{ token: string; expiresInMs: number }> {
  const { realm = "", service } = challenge.parameters;
  if (!URL.canParse(realm))
    throw new ImageError("asking for a token: the registry named no valid realm");
  const url = new URL(realm);
  // A registry elsewhere has no business with what listens on this machine.
  const isLocal = isLoopback(url.host) && isLoopback(new URL(origin).host);
  if (url.protocol !== "https:" && !isLocal)
    throw new ImageError(
      "asking for a token: the registry named a realm that is not reached by TLS",
    );
  const ca = certificates?.(url.host);
  const answer = await send({ ...tokenRequest(url, service, scopes, credentials), ca, guard });
  const body = await readAll(answer, 256 * 1024);
  const status = answer.statusCode ?? 0;
  if (status !== 200)
    throw new RegistryError(`asking ${url.host} for a token: ${status}`, {
      status,
      host: url.host,
    });
  const { token, access_token, expires_in } = (parseJson(body, "the response with a token") ??
    {}) as { token?: string; access_token?: string; expires_in?: number };
  const value = token ?? access_token;
  if (!value) throw new ImageError("asking for a token: the response has no token");
  return { token: value, expiresInMs: (expires_in ?? 60) * 1000 };
}

function tokenRequest(
  realm: URL,
  service: string | undefined,
  scopes: readonly string[],
  credentials: Credentials | undefined,
): HttpRequest {
  if (credentials && "identityToken" in credentials) {
    const form = new URLSearchParams({
      grant_type: "refresh_token",
      client_id: "spry",
      refresh_token: credentials.identityToken,
      scope: scopes.join(" "),
      ...(service ? { service } : {}),
    });
    const bytes = Buffer.from(form.toString());
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const body = { size: bytes.length, open: () => bytes };
    return { method: "POST", url: realm, headers, body };
  }
  const url = new URL(realm);
  if (service) url.searchParams.set("service", service);
  for (const scope of scopes) url.searchParams.append("scope", scope);
  const authorization = basicAuthorization(credentials);
  return { method: "GET", url, headers: authorization ? { authorization } : {} };
}
