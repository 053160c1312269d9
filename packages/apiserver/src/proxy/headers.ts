import { type IncomingHttpHeaders } from "node:http";
import { isIdentityHeader } from "../aggregation/identity-headers.ts";

export type Headers = Record<string, string | string[] | undefined>;

/** Hop-by-hop headers (RFC 9110 section 7.6.1), and those that are meant for the API server alone. */
const notPassedOn = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "host",
  "authorization",
  "cookie",
  "expect",
]);

/**
 * Headers of a response that comes from elsewhere and has the API server's origin: its page must not act with the API's authority,
 * nor leave anything there, such as a cookie, that later requests would carry.
 */
const notPassedBack = new Set([
  "connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
  "trailer",
  "proxy-authenticate",
  "set-cookie",
  "set-cookie2",
  "clear-site-data",
  "service-worker-allowed",
  "strict-transport-security",
  "alt-svc",
  "refresh",
]);

/** A client's headers for a server behind this one: without those that only this one may understand or set. */
export function headersOnward(headers: IncomingHttpHeaders): Headers {
  const named = new Set(
    (headers.connection ?? "")
      .toLowerCase()
      .split(",")
      .map((each) => each.trim()),
  );
  return without(
    headers,
    (name) =>
      notPassedOn.has(name) ||
      named.has(name) ||
      name.startsWith("impersonate-") ||
      isIdentityHeader(name),
  );
}

/** A server's headers for a client. */
export function headersBackward(headers: IncomingHttpHeaders): Headers {
  return without(headers, (name) => notPassedBack.has(name) || name.startsWith("impersonate-"));
}

function without(headers: IncomingHttpHeaders, isLeftOut: (name: string) => boolean): Headers {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !isLeftOut(name)));
}
