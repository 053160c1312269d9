import { type UserInfo } from "../request.ts";
import { extraPrefix, groupHeader, uidHeader, userHeader } from "./front-proxy.ts";

/** Headers by their names in lower case, each of a user's parts as an aggregated server reads it. */
export function identityHeaders(user: UserInfo): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {
    [userHeader.toLowerCase()]: headerValue(user.name),
    [groupHeader.toLowerCase()]: user.groups.map(headerValue),
  };
  if (user.uid) headers[uidHeader.toLowerCase()] = headerValue(user.uid);
  for (const [key, values] of Object.entries(user.extra ?? {}))
    headers[`${extraPrefix}${escapedKey(key)}`.toLowerCase()] = values.map(headerValue);
  return headers;
}

/** Whether a client's header could pass for one of those; servers may read `_` as `-`. */
export function isIdentityHeader(name: string): boolean {
  return name.replaceAll("_", "-").toLowerCase().startsWith("x-remote-");
}

/** `client-go/transport`, `headerKeyEscape`: what a header's name cannot hold, and `%`, as escapes. */
function escapedKey(key: string): string {
  return [...Buffer.from(key)]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return /[!#$&'*+\-.^_`|~0-9A-Za-z]/.test(character)
        ? character
        : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    })
    .join("");
}

/** UTF-8 as it is on the wire; names come from certificates and impersonation, and hold no line ends. */
function headerValue(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return Buffer.from(text.replace(/[\u0000-\u001f\u007f]/g, " ")).toString("latin1");
}
