/** Percent-encodings of characters that need none (RFC 3986, section 6.2.2.2). */
const unreserved = /%(?:2d|2e|3[0-9]|4[1-9a-f]|5[0-9a]|5f|6[1-9a-f]|7[0-9a]|7e)/gi;
const invalidEncoding = /%(?![0-9a-fA-F]{2})/;
/** Control characters, which readers of URLs leave out or end at, and the backslash, which some take for a slash. */
const encodedControls = /%(?:[01][0-9a-f]|7f|5c)/i;
/** What no UTF-8 has (RFC 3629, section 3): longer forms of characters that have shorter ones. Some readers decode them. */
const overlong = /%(?:c[01]|e0%[89][0-9a-f]|f0%8[0-9a-f]|f[89a-f](?=%[89ab]))/i;

/**
 * The path by which rules are chosen, and which the Service must get, so that both read the same: unreserved characters
 * decoded, `.` and `..` resolved (RFC 3986, sections 6.2.2.2 and 5.2.4; what Istio's `BASE` normalization does). Other
 * encodings stay as they are: `%2F` does not separate segments.
 *
 * @param target the request's target in origin form; a query is left out
 * @returns undefined for what readers understand differently: backslashes and control characters, encoded or not, incomplete or
 *   overlong encodings, `..` before what may end a segment (`;`, `?`, `#`, also encoded) or behind `%2F` or an empty segment, and no
 *   leading slash. Such a request gets 400.
 */
export function requestPath(target: string): string | undefined {
  const end = target.search(/[?#]/);
  const path = end < 0 ? target : target.slice(0, end);
  if (!path.startsWith("/")) return undefined;
  // oxlint-disable-next-line no-control-regex
  if (/[\\\u0000-\u0020\u007f]/.test(path)) return undefined;
  const encoded = withEncodedBytes(path);
  if (!encoded.includes("%") && !path.includes("/.")) return path;
  if (invalidEncoding.test(encoded) || encodedControls.test(encoded) || overlong.test(encoded))
    return undefined;
  const decoded = path.replace(unreserved, (encoded) =>
    String.fromCharCode(Number.parseInt(encoded.slice(1), 16)),
  );
  const plain = withoutDots(decoded);
  if (decoded !== plain && decoded.includes("//")) return undefined;
  return hiddenDots.test(plain) ? undefined : plain;
}

/** Bytes that were sent as they are. Node.js shows each as one character. */
function withEncodedBytes(path: string): string {
  // oxlint-disable-next-line no-control-regex
  if (/^[\u0000-\u007f]*$/.test(path)) return path;
  return path.replace(/[\u0080-\u00ff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`);
}

/**
 * `.` and `..` for readers that decode first and then separate segments, or end the path at a question mark or a number sign, or that take
 * what follows a semicolon for a segment's parameter.
 */
const hiddenDots = /(?:\/|%2f)\.{1,2}(?:;|%3b|%3f|%23|%2f|\/|$)/i;

/**
 * Other paths that a Service may understand by a path that `requestPath` has returned: with `%2F` as a slash, without
 * parameters behind semicolons, ended at an encoded question mark or number sign, with other delimiters decoded (`%40` as `@`), with one
 * slash instead of several.
 * @param isEncodedRule the path's rule is written with encodings: then delimiters are encoded on purpose
 */
export function otherReadings(path: string, { isEncodedRule = false } = {}): string[] {
  if (!/\/\/|;|%(?:2[1346-9a-cf]|3[abdf]|40)/i.test(path)) return [];
  const readings = new Set([path]);
  const ways = [ended, decodedSlashes, withoutParameters, mergedSlashes];
  for (const read of isEncodedRule ? ways : [...ways, decodedDelimiters])
    for (const each of readings) readings.add(read(each));
  readings.delete(path);
  return [...readings];
}

const ended = (path: string) => path.replace(/%(?:3f|23).*$/i, "");
const decodedSlashes = (path: string) => path.replace(/%2f/gi, "/");
const withoutParameters = (path: string) => path.replace(/(?:;|%3b)[^/]*/gi, "");
/** `gen-delims` and `sub-delims` of RFC 3986, section 2.2, that a rule's path may have. */
const decodedDelimiters = (path: string) =>
  path.replace(/%(?:2[146-9a-c]|3[abd]|40)/gi, (encoded) =>
    String.fromCharCode(Number.parseInt(encoded.slice(1), 16)),
  );
const mergedSlashes = (path: string) => path.replace(/\/{2,}/g, "/");

function withoutDots(path: string): string {
  if (!path.includes("/.")) return path;
  const output: string[] = [];
  const segments = path.slice(1).split("/");
  for (const [index, segment] of segments.entries()) {
    const isLast = index === segments.length - 1;
    if (segment === "..") output.pop();
    else if (segment !== ".") output.push(segment);
    if (isLast && (segment === ".." || segment === ".")) output.push("");
  }
  return `/${output.join("/")}`;
}
