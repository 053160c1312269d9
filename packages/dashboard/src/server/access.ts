import { type Transport } from "@spry/kube";
import { type ForeignTokens } from "./foreign-tokens.ts";
import { type Sessions } from "./sessions.ts";

/** How tokens begin that this server has issued itself; all others are the API server's to judge. */
export const loginTokenPrefix = "spry-login.";

export const isOwnLogin = (token: string): boolean => token.startsWith(loginTokenPrefix);

/** Where a user's requests go. The dashboard itself has no rights: each transport acts as one user, or as none. */
export interface Access {
  /** To the API server, without any credential: the request's own `Authorization` is all that there is. */
  withToken: Transport;
  /** As the user who started this server, for those who logged in with a link. Absent: there are no links. */
  asOwner?: Transport | undefined;
}

/** The transport for a token: as the user behind it. Undefined when it is not valid here, nor for the API server. */
export async function transportFor(
  access: Access,
  { sessions, foreign }: { sessions: Sessions; foreign: ForeignTokens },
  token: string,
): Promise<Transport | undefined> {
  if (isOwnLogin(token)) {
    return sessions.isValid(token) ? access.asOwner : undefined;
  }
  if (!(await foreign.isKnown(token))) return undefined;
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
