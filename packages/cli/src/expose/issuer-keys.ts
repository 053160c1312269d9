import { fetchKeys } from "@spry/exposure";
import { messageOf, OutboundGuard } from "@spry/kube";
import { UserError } from "../user-error.ts";

/** The user's own command calls what the user names. */
const guard = new OutboundGuard({ allowPrivate: true, allowLoopback: true });

/**
 * Where an issuer has its keys, from its metadata (OpenID Connect Discovery 1.0, section 4).
 * @throws UserError if it has none, or is another's
 */
export async function keysOf(issuer: string): Promise<string> {
  const wayOut = "name the URL of its keys with --jwks-uri";
  if (!URL.canParse(issuer) || !/^https?:/.test(issuer))
    throw new UserError(`${issuer} is not a URL: its keys cannot be looked up`, wayOut);
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const problem = (what: string) =>
    new UserError(`the keys of ${issuer} were not found: ${what}`, wayOut);
  let text: string;
  try {
    text = await fetchKeys(url, { guard });
  } catch (error) {
    throw problem(`${url}: ${messageOf(error)}`);
  }
  const metadata = parse(text);
  if (!metadata) throw problem(`${url} is not JSON`);
  // The issuer's own name is what its tokens contain, to the last slash.
  if (metadata.issuer !== issuer)
    throw new UserError(
      `${url} is the metadata of another issuer: ${metadata.issuer}`,
      `use --jwt-issuer ${metadata.issuer}`,
    );
  if (typeof metadata.jwks_uri !== "string") throw problem(`${url} has no jwks_uri`);
  return metadata.jwks_uri;
}

function parse(text: string): { issuer?: string; jwks_uri?: unknown } | undefined {
  try {
    return (JSON.parse(text) as { issuer?: string } | null) ?? undefined;
  } catch {
    return undefined;
  }
}
