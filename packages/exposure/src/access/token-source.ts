import { type TokenAuthentication } from "@spry/function";

/** What is read of a request to find its token. */
export interface TokenRequest {
  /** The value of a header, its name in lower case. */
  header(name: string): string | undefined;
  /** Of the target, without the question mark. */
  query: string;
}

/** Longer texts are not tokens. */
const maxTokenLength = 16 * 1024;

/**
 * The token that an authentication takes from a request: from its header or parameter, or by default from
 * `Authorization: Bearer` and `access_token` (Istio's RequestAuthentication). Undefined if there is none.
 */
export function tokenFor(
  { fromHeaders = [], fromParams = [] }: TokenAuthentication,
  request: TokenRequest,
): string | undefined {
  const isDefault = fromHeaders.length === 0 && fromParams.length === 0;
  const headers = isDefault ? [{ name: "authorization", prefix: "Bearer " }] : fromHeaders;
  const params = isDefault ? ["access_token"] : fromParams;
  for (const { name, prefix } of headers) {
    const token = withoutPrefix(request.header(name.toLowerCase()), prefix ?? "");
    if (token) return token;
  }
  if (params.length === 0 || request.query === "") return undefined;
  const values = new URLSearchParams(request.query);
  return params.map((name) => bounded(values.get(name) ?? "")).find(Boolean);
}

/** Without a prefix the whole value is the token; `Bearer ` may precede it, which the original calls the default. */
function withoutPrefix(value: string | undefined, prefix: string): string | undefined {
  if (value === undefined) return undefined;
  if (prefix === "") return bounded(value.replace(/^Bearer +/i, ""));
  const isPresent = value.slice(0, prefix.length).toLowerCase() === prefix.toLowerCase();
  return isPresent ? bounded(value.slice(prefix.length).trimStart()) : undefined;
}

function bounded(token: string): string | undefined {
  return token.length > 0 && token.length <= maxTokenLength ? token : undefined;
}
