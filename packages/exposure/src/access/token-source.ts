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

/** A token, and where in the request it is. */
export interface FoundToken {
  /** The header or parameter: the same text at another place is another token. */
  place: string;
  text: string;
}

/**
 * The tokens that an authentication takes from a request, from each of its headers and parameters, or by default from
 * `Authorization: Bearer` and `access_token` (Istio's RequestAuthentication). All of them have to be good: the Service may read
 * another one than the first. The values of a repeated parameter are joined, as those of a header are, and are not a valid token.
 * A text that is too long is returned as an empty one, which is not valid either.
 */
export function tokensFor(
  { fromHeaders = [], fromParams = [] }: TokenAuthentication,
  request: TokenRequest,
): FoundToken[] {
  const isDefault = fromHeaders.length === 0 && fromParams.length === 0;
  const headers = isDefault ? [{ name: "authorization", prefix: "Bearer " }] : fromHeaders;
  const params = isDefault ? ["access_token"] : fromParams;
  const values = new URLSearchParams(params.length === 0 ? "" : request.query);
  const found = [
    ...headers.map(({ name, prefix }) => {
      const header = name.toLowerCase();
      return {
        place: `header ${header}`,
        text: withoutPrefix(request.header(header), prefix ?? ""),
      };
    }),
    ...params.map((name) => ({
      place: `parameter ${name}`,
      text: values.getAll(name).join(", "),
    })),
  ];
  return found.flatMap(({ place, text = "" }) =>
    text === "" ? [] : { place, text: text.length > maxTokenLength ? "" : text },
  );
}

/** Without a prefix the whole value is the token; `Bearer ` may precede it, which the original calls the default. */
function withoutPrefix(value: string | undefined, prefix: string): string | undefined {
  if (value === undefined) return undefined;
  if (prefix === "") return value.replace(/^Bearer +/i, "");
  const isPresent = value.slice(0, prefix.length).toLowerCase() === prefix.toLowerCase();
  return isPresent ? value.slice(prefix.length).trimStart() : undefined;
}
