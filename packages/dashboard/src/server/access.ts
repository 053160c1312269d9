import {
  type ClusterConfig,
  type Transport,
  type WebSocketAccess,
  webSocketAccess,
} from "@spry/kube";
import { type ForeignTokens } from "./foreign-tokens.ts";
import { type Sessions } from "./sessions.ts";

/** The prefix of tokens that this server has issued itself; the API server decides about all others. */
export const loginTokenPrefix = "spry-login.";

export const isOwnLogin = (token: string): boolean => token.startsWith(loginTokenPrefix);

/** Where a user's requests go. The dashboard itself has no rights: each transport acts as one user, or as none. */
export interface Access {
  /** To the API server, with no credential but the request's own `Authorization`. */
  withToken: Transport;
  /** As the user who started this server, for those who logged in with a link. Absent: links do not exist. */
  asOwner?: Transport | undefined;
  /** The same API server for WebSockets, where they reach Functions by way of it: without a credential, and as the owner. */
  sockets?: { withToken: ClusterConfig; asOwner?: ClusterConfig | undefined } | undefined;
}

/** What a WebSocket to the API server is opened with as the token's user; undefined where there is none. */
export async function socketAccessFor(
  { sockets }: Access,
  token: string,
  path: string,
): Promise<WebSocketAccess | undefined> {
  if (!isOwnLogin(token)) return sockets && webSocketAccess({ ...sockets.withToken, token }, path);
  return sockets?.asOwner && webSocketAccess(sockets.asOwner, path);
}

/** A transport that acts as the token's user. Undefined when the token is valid neither here nor for the API server. */
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

/** The token in a header `Authorization: Bearer …` (RFC 6750 section 2.1). */
export function bearerOf(authorization: string | undefined): string | undefined {
  return /^Bearer ([\w.~+/-]{1,8192}=*)$/i.exec(authorization ?? "")?.[1];
}
