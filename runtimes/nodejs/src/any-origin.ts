import { type OutgoingHttpHeader, type OutgoingHttpHeaders } from "node:http";

/** What `writeHead` takes: an object, or names and values by turns or in pairs. */
export type HeadHeaders = OutgoingHttpHeaders | OutgoingHttpHeader[];

export const corsHeader = "Access-Control-Allow-Origin";
/** The contract lets pages of every origin read every answer, unless the Function's owner says no. */
export const anyOrigin = Object.freeze({ [corsHeader]: "*" });

/** The headers, and that one if it is not among them. */
export function withAnyOrigin(headers: HeadHeaders): HeadHeaders {
  if (!Array.isArray(headers))
    return Object.keys(headers).some(isCorsHeader) ? headers : { ...headers, ...anyOrigin };
  const flat: OutgoingHttpHeader[] = Array.isArray(headers[0]) ? headers.flat() : headers;
  for (let at = 0; at < flat.length; at += 2) {
    const name = flat[at];
    if (typeof name === "string" && isCorsHeader(name)) return flat;
  }
  return flat.concat(corsHeader, "*");
}

function isCorsHeader(name: string): boolean {
  return name.length === corsHeader.length && name.toLowerCase() === corsHeader.toLowerCase();
}
