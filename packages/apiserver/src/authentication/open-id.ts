import { HttpResponse } from "../http/message.ts";
import { issuer } from "./issuer.ts";
import { type ServiceAccountTokens } from "./service-account-tokens.ts";

/** OpenID Connect Discovery for who checks ServiceAccount tokens without asking; undefined for other paths. */
export function openIdDocument(
  tokens: ServiceAccountTokens,
  path: string,
): HttpResponse | undefined {
  if (path === "/openid/v1/jwks") {
    const headers = {
      "content-type": "application/jwk-set+json",
      "cache-control": "public, max-age=3600",
    };
    return new HttpResponse(JSON.stringify(tokens.publicKeys()), { headers });
  }
  if (path !== "/.well-known/openid-configuration") return undefined;
  const document = {
    issuer,
    jwks_uri: `${issuer}/openid/v1/jwks`,
    response_types_supported: ["id_token"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["ES256"],
  };
  const headers = { "content-type": "application/json", "cache-control": "public, max-age=3600" };
  return new HttpResponse(JSON.stringify(document), { headers });
}
