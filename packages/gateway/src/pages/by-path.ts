/**
 * Functions under the gateway's own host, for machines on which `*.localhost` does not resolve:
 * `http://localhost:8080/fn/<namespace>/<name>/`. All of them share one origin there, so their pages may not
 * change anything that belongs to the origin: cookies, service workers, storage.
 */
import { isIP } from "node:net";
import { type ResponseHeaders } from "../attempt/attempt.ts";
import { hostName } from "../exposure/filters.ts";
import { type Filter } from "../request/filters.ts";

const form = /^\/fn\/([a-z0-9][-a-z0-9]{0,62})\/([a-z0-9][-a-z0-9]{0,62})(\/[^?#]*)?(\?.*)?$/;

/** Whether the host is loopback's: a page cannot reach it by another name that resolves to this machine (DNS rebinding). */
export function isThisMachine(authority: string): boolean {
  const name = hostName(authority).replaceAll(/[[\]]/g, "");
  return name === "localhost" || name === "::1" || (isIP(name) === 4 && name.startsWith("127."));
}

/** Reads the Function from the path, and leaves the rest of the path to it. */
export const byPath: Filter = (passage) => {
  if (passage.key !== "" || passage.isPublic || !passage.isExternal) return undefined;
  const [, namespace, name, path, query = ""] = form.exec(passage.path) ?? [];
  if (namespace === undefined || !isThisMachine(passage.host)) return undefined;
  const prefix = `/fn/${namespace}/${name}`;
  if (path === undefined) {
    // Relative links of the Function's pages are below this directory.
    passage.response.writeHead(308, { location: `${prefix}/${query}`, "content-length": 0 }).end();
    return "handled";
  }
  passage.key = `${namespace}/${name}`;
  passage.prefix = prefix;
  passage.path = `${path}${query}`;
  return undefined;
};

/** The request's headers, names and values by turns, without the cookies that others have set for this host. */
export function withoutCookies(headers: readonly string[], prefix: string): string[] {
  return [
    ...pairs(headers).flatMap(([name, value]) =>
      /^cookie$|^x-forwarded-prefix$/i.test(name) ? [] : [name, value],
    ),
    "x-forwarded-prefix",
    prefix,
  ];
}

const ofOrigin = /^(?:set-cookie|service-worker-allowed|clear-site-data)$/i;
const localPath = /^\/(?!\/)/;

/** The response's headers, for an origin that is not the Function's alone. */
export function isolated(headers: readonly string[], prefix: string): string[] {
  const own = pairs(headers).flatMap(([name, value]) => {
    if (ofOrigin.test(name)) return [];
    if (/^location$/i.test(name) && localPath.test(value)) return [name, `${prefix}${value}`];
    return [name, value];
  });
  // In addition to the Function's own policy: the strictest of all of them holds (CSP level 3, section 4.2).
  return [...own, "content-security-policy", "sandbox allow-scripts"];
}

/** The same for the response that opens a tunnel. */
export const forTunnel = (headers: ResponseHeaders): ResponseHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !ofOrigin.test(name)));

function pairs(headers: readonly string[]): [name: string, value: string][] {
  const list: [string, string][] = [];
  for (let i = 0; i + 1 < headers.length; i += 2)
    list.push([headers[i] ?? "", headers[i + 1] ?? ""]);
  return list;
}
