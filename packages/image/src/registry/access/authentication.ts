import { type IncomingMessage } from "node:http";
import { RegistryFailure } from "../registry-failure.ts";
import { type Grant } from "./grants.ts";
import { type Login, type Logins } from "./logins.ts";

/** What the login of a request is good for. Throws `UNAUTHORIZED` when it has none, or one that was not made here. */
export function authenticate(
  { headers: { authorization } }: IncomingMessage,
  logins: Pick<Logins, "grantOf">,
): Grant {
  const login = loginIn(authorization ?? "");
  const grant = login && logins.grantOf(login);
  if (grant) return grant;
  throw unauthorized("authentication required");
}

export function unauthorized(message: string): RegistryFailure {
  return new RegistryFailure("UNAUTHORIZED", message, {
    headers: { "www-authenticate": 'Basic realm="registry"' },
  });
}

/** Of HTTP Basic (RFC 7617). */
function loginIn(authorization: string): Login | undefined {
  const [scheme = "", encoded = ""] = authorization.split(" ", 2);
  const pair = Buffer.from(encoded, "base64").toString();
  const colon = pair.indexOf(":");
  if (scheme.toLowerCase() !== "basic" || colon <= 0) return undefined;
  return { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
}
