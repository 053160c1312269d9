/** Percent-encodings of characters that need none (RFC 3986, section 6.2.2.2). */
const unreserved = /%(?:2d|2e|3[0-9]|4[1-9a-f]|5[0-9a]|5f|6[1-9a-f]|7[0-9a]|7e)/gi;
const invalidEncoding = /%(?![0-9a-fA-F]{2})/;

/**
 * The path by which rules are chosen, and which the Service must get, so that both read the same: unreserved characters
 * decoded, `.` and `..` resolved (RFC 3986, sections 6.2.2.2 and 5.2.4; what Istio's `BASE` normalization does). Other
 * encodings stay as they are: `%2F` does not separate segments.
 *
 * @param target the request's target in origin form; a query is left out
 * @returns undefined for what readers understand differently: backslashes, control characters, `%00`, incomplete or
 *   overlong encodings, `..` with a parameter (`..;`) or behind `%2F` or an empty segment, and no leading slash. Such a
 *   request gets 400.
 */
export function requestPath(target: string): string | undefined {
  const end = target.search(/[?#]/);
  const path = end < 0 ? target : target.slice(0, end);
  if (!path.startsWith("/")) return undefined;
  // oxlint-disable-next-line no-control-regex
  if (/[\\\u0000-\u0020\u007f]/.test(path)) return undefined;
  if (!path.includes("%") && !path.includes("/.")) return path;
  if (invalidEncoding.test(path) || /%00|%5c|%c[01]%[89ab]/i.test(path)) return undefined;
  const decoded = path.replace(unreserved, (encoded) =>
    String.fromCharCode(Number.parseInt(encoded.slice(1), 16)),
  );
  const plain = withoutDots(decoded);
  if (decoded !== plain && decoded.includes("//")) return undefined;
  return hiddenDots.test(plain) ? undefined : plain;
}

/** `.` and `..` for readers that decode `%2F`, or that take what follows a semicolon for a segment's parameter. */
const hiddenDots = /(?:\/|%2f)\.{1,2}(?:;|%2f|\/|$)/i;

/**
 * Other paths that a Service may understand by a path that `requestPath` has returned: with `%2F` as a slash, without
 * parameters behind semicolons, with one slash instead of several.
 */
export function otherReadings(path: string): string[] {
  if (!/\/\/|%2f|;/i.test(path)) return [];
  const readings = new Set([path]);
  for (const read of [decodedSlashes, withoutParameters, mergedSlashes])
    for (const each of readings) readings.add(read(each));
  readings.delete(path);
  return [...readings];
}

const decodedSlashes = (path: string) => path.replace(/%2f/gi, "/");
const withoutParameters = (path: string) => path.replace(/;[^/]*/g, "");
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
