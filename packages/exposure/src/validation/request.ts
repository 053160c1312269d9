import { type ApiRuleRule } from "@spry/function";
import { type Failure, failure } from "./failure.ts";

/** A token (RFC 9110, section 5.6.2). */
export const headerName = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/;
/** Visible characters, spaces and tabs. */
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/;
/** Without what ends a cookie (RFC 6265, section 4.1.1). */
const cookieValue = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/;

/** Those that decide how a message is read, or where it goes: a rule that sets one would make two readers disagree. */
const reserved = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export function validateRequest(path: string, { request }: ApiRuleRule): Failure[] {
  const headers = Object.entries(request?.headers ?? {}).flatMap(([name, value]) => {
    const at = `${path}.request.headers[${name}]`;
    if (!headerName.test(name)) return [failure(at, "not a valid header name")];
    if (reserved.has(name.toLowerCase()))
      return [failure(at, "this header is set by the gateway and cannot be changed")];
    return headerValue.test(value) ? [] : [failure(at, "not a valid header value")];
  });
  const cookies = Object.entries(request?.cookies ?? {}).flatMap(([name, value]) => {
    const at = `${path}.request.cookies[${name}]`;
    if (!headerName.test(name)) return [failure(at, "not a valid cookie name")];
    return cookieValue.test(value) ? [] : [failure(at, "not a valid cookie value")];
  });
  return [...headers, ...cookies];
}
