import { type Transport } from "@spry/kube";
import { type Sessions } from "./sessions.ts";

/** How tokens begin that this server has issued itself; all others are the API server's to judge. */
export const loginTokenPrefix = "spry-login.";

/** Where a user's requests go. The dashboard itself has no rights: each transport acts as one user, or as none. */
export interface Access {
  /** To the API server, without any credential: the request's own `Authorization` is all that there is. */
  withToken: Transport;
  /** As the user who started this server, for those who logged in with a link. Absent: there are no links. */
  asOwner?: Transport | undefined;
}

/** The transport for a token: as the user behind it. Undefined when it is not valid here. */
export function transportFor(
  access: Access,
  sessions: Sessions,
  token: string,
): Transport | undefined {
  if (token.startsWith(loginTokenPrefix)) {
    return sessions.isValid(token) ? access.asOwner : undefined;
  }
  return (request) => {
    const headers = new Headers(request.headers);
    headers.set("authorization", `Bearer ${token}`);
    return access.withToken(new Request(request, { headers }));
  };
}

/** Of a header `Authorization: Bearer …` (RFC 6750 section 2.1). */
export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer ([\w.~+/-]{1,8192}=*)$/i.exec(authorization ?? "")?.[1];
}
