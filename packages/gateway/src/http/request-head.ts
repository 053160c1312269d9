import { maxHeadBytes } from "../attempt/backend.ts";
import { type ClientRequest } from "./client-side.ts";
import { type ErrorResponse, malformedHead } from "./error-response.ts";

/** What a request is for, once its head has been found to be sound. */
export interface Target {
  /** The authority as it was written, host and perhaps port; empty where an HTTP/1.0 client names none. */
  host: string;
  /** Path and query, as the Pod gets them. */
  path: string;
}

const absoluteForm = /^https?:\/\/([^/?#]*)([^#]*)/i;

/**
 * Reads the request's target, or returns why the request is refused: where two readers of the same bytes could
 * understand different requests (RFC 9112 section 11.2), nothing is passed on. The authority of a target in absolute
 * form wins over `Host` (section 3.2.2).
 */
export function readHead(request: ClientRequest): Target | ErrorResponse {
  const { headers, httpVersionMajor, httpVersionMinor, url = "/" } = request;
  if (httpVersionMajor !== 1 && !request.stream) return unsupportedVersion(request.httpVersion);
  if (request.stream && sizeOf(request.rawHeaders) > maxHeadBytes) return headTooLarge;
  const coding = headers["transfer-encoding"];
  if (coding !== undefined) {
    // Section 6.1: its framing must be treated as faulty.
    if (httpVersionMinor === 0) return malformedHead("HTTP/1.0 has no Transfer-Encoding");
    if (coding.trim().toLowerCase() !== "chunked") return unsupportedCoding;
  }
  const hosts = countOf(request.rawHeaders, "host");
  if (hosts > 1) return malformedHead("more than one Host header");
  if (hosts === 0 && isModern(request)) return malformedHead("no Host header");
  if (url.startsWith("/") || url === "*") return { host: headers.host ?? "", path: url };
  const absolute = absoluteForm.exec(url);
  if (!absolute) return malformedHead("the target is neither a path nor an http URL");
  const [, host = "", path = ""] = absolute;
  // RFC 9110 section 4.2.4: it may hide which host is meant.
  if (host.includes("@")) return malformedHead("the target contains user information");
  return { host, path: path.startsWith("/") ? path : `/${path}` };
}

/** Whether the client understands chunks, interim responses and upgrades (RFC 9110 sections 7.8 and 15.2, RFC 9112 section 7). */
export function isModern({ httpVersionMajor, httpVersionMinor }: ClientRequest): boolean {
  return httpVersionMajor > 1 || httpVersionMinor > 0;
}

function countOf(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const each = rawHeaders[i] ?? "";
    if (each.length === name.length && each.toLowerCase() === name) count++;
  }
  return count;
}

function sizeOf(rawHeaders: readonly string[]): number {
  let bytes = 0;
  for (const each of rawHeaders) bytes += each.length;
  return bytes;
}

export const headTooLarge: ErrorResponse = {
  status: 431,
  reason: "HeadersTooLarge",
  message: `request headers are larger than ${maxHeadBytes / 1024} KiB`,
};

const unsupportedVersion = (version: string): ErrorResponse => ({
  status: 505,
  reason: "VersionNotSupported",
  message: `HTTP/${version} is not supported: use HTTP/1.1`,
  headers: { connection: "close" },
});

const unsupportedCoding: ErrorResponse = {
  status: 501,
  reason: "CodingNotSupported",
  message: "the request's Transfer-Encoding is not supported: use only chunked",
  headers: { connection: "close" },
};
