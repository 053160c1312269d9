import { type ResponseHeaders } from "../attempt/attempt.ts";
import { type ClientRequest } from "./client-side.ts";
import { requestIdHeader } from "./request-id.ts";

/** Headers that concern one connection only (RFC 9110 section 7.6.1), never passed on. */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
/** Written by the gateway itself. */
const owned = new Set([
  "expect",
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-proto",
]);
/** What components of Knative say to each other: a client has no say in it. */
const internal = "knative-serving-";
const plainConnections = new Set(["keep-alive", "close", "upgrade", "Upgrade", "Keep-Alive"]);

/** A host and a port (RFC 3986 section 3.2), without what would end a quoted string (RFC 7239 section 4). */
const authority = /^[\w.:%[\]-]+$/;

export interface Forwarding {
  /** The authority that was asked for. It stands for `Host`. */
  host: string;
  /** Whether a proxy of ours is before us: only then what a client says in `X-Forwarded-*` counts. */
  trust: boolean;
  isSecure?: boolean;
  /** In place of the client's, which may be none or a bad one. */
  requestId?: string;
  /** In place of the client's headers of these names, which are in lower case. */
  changes?: Readonly<Record<string, string>> | undefined;
}

/** The request's headers as the Pod gets them, names and values by turns, in their order. */
export function requestHeaders(
  request: ClientRequest,
  { host, trust, isSecure = false, requestId, changes }: Forwarding,
): string[] {
  const proto = isSecure ? "https" : "http";
  const { rawHeaders, headers } = request;
  const named = namedByConnection(headers.connection);
  const out: string[] = ["host", host];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    const lower = name.toLowerCase();
    if (lower === "host" || hopByHop.has(lower) || owned.has(lower) || named?.has(lower)) continue;
    if (requestId !== undefined && lower === requestIdHeader) continue;
    if (lower.startsWith(internal) || (changes && Object.hasOwn(changes, lower))) continue;
    out.push(name, rawHeaders[i + 1] ?? "");
  }
  const address = clientAddress(request.socket);
  // Callers inside may write anything as their `Host`.
  const asked = authority.test(host) ? `;host="${host}"` : "";
  const before = trust ? headers : {};
  out.push(
    "x-forwarded-for",
    joined(before["x-forwarded-for"], address),
    "x-forwarded-proto",
    single(before["x-forwarded-proto"]) ?? proto,
    "x-forwarded-host",
    single(before["x-forwarded-host"]) ?? host,
    "forwarded",
    joined(before.forwarded, `for=${quoted(address)}${asked};proto=${proto}`),
  );
  if (requestId !== undefined && !(changes && Object.hasOwn(changes, requestIdHeader)))
    out.push(requestIdHeader, requestId);
  for (const name in changes) if (!reserved(name)) out.push(name, changes[name] ?? "");
  return out;
}

/** Headers that decide how the request is read cannot be changed by a rule. */
function reserved(name: string): boolean {
  return name === "host" || name === "content-length" || hopByHop.has(name) || owned.has(name);
}

/** The response's headers as the client gets them, names and values by turns. `requestId`: where the Function names none. */
export function responseHeaders(headers: ResponseHeaders, requestId?: string): string[] {
  const connection = headers.connection;
  const named = namedByConnection(Array.isArray(connection) ? connection.join() : connection);
  const out: string[] = [];
  for (const name in headers) {
    if (hopByHop.has(name) || named?.has(name)) continue;
    const value = headers[name];
    if (typeof value === "string") out.push(name, value);
    else for (const each of value ?? []) out.push(name, each);
  }
  if (requestId !== undefined && headers[requestIdHeader] === undefined)
    out.push(requestIdHeader, requestId);
  return out;
}

/** Further headers that `Connection` declares to be of this connection only. */
function namedByConnection(connection: string | undefined): Set<string> | undefined {
  if (connection === undefined || plainConnections.has(connection)) return undefined;
  const names = new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
  // The host under which the Pod is called is not the client's to remove.
  names.delete("host");
  return names;
}

/** Of the other end; without the form that IPv4 has on sockets for IPv6. */
export function clientAddress(socket: { remoteAddress?: string | undefined }): string {
  const address = socket.remoteAddress ?? "unknown";
  return address.startsWith("::ffff:") ? address.slice("::ffff:".length) : address;
}

/** RFC 7239 section 6: IPv6 addresses stand in brackets and quotes. */
function quoted(address: string): string {
  return address.includes(":") ? `"[${address}]"` : address;
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function joined(before: string | string[] | undefined, last: string): string {
  return before === undefined
    ? last
    : `${Array.isArray(before) ? before.join(", ") : before}, ${last}`;
}
