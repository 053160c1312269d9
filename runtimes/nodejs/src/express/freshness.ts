import { type IncomingHttpHeaders, type OutgoingHttpHeader } from "node:http";

interface Validators {
  etag: OutgoingHttpHeader | undefined;
  lastModified: OutgoingHttpHeader | undefined;
}

/** Whether the client's copy is still what it would get (RFC 9110, section 13.1). */
export function isFresh(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  if (/(?:^|,)\s*no-cache\s*(?:,|$)/.test(headers["cache-control"] ?? "")) return false;
  const known = headers["if-none-match"];
  if (known !== undefined)
    return known === "*" || known.split(",").some((each) => isSameTag(each.trim(), String(etag)));
  const since = headers["if-modified-since"];
  return (
    since !== undefined &&
    lastModified !== undefined &&
    Date.parse(String(lastModified)) <= Date.parse(since)
  );
}

function isSameTag(a: string, b: string): boolean {
  return a.replace(/^W\//, "") === b.replace(/^W\//, "");
}
