/** Whom the API server passes a request on for: an aggregated API's part of `extension-apiserver-authentication`. */
import { type IncomingMessage } from "node:http";
import { TLSSocket } from "node:tls";
import { type User } from "./caller.ts";

/** Which client certificates are the API server's own, and in which headers it names a user. */
export interface FrontProxy {
  /** PEM of the authority of its client certificates. */
  ca: string;
  /** Common names of these; with none, every one of the authority. */
  allowedNames: readonly string[];
  /** In lower case, as all headers here; the first that a request has counts. */
  usernameHeaders: readonly string[];
  uidHeaders: readonly string[];
  groupHeaders: readonly string[];
  extraPrefixes: readonly string[];
}

/** Read from the ConfigMap's data; undefined where the API server passes no requests on. */
export function frontProxyIn(data: Record<string, string> | undefined): FrontProxy | undefined {
  const list = (name: string): string[] => {
    const value: unknown = JSON.parse(data?.[`requestheader-${name}`] || "[]");
    return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
  };
  const lower = (name: string) => list(name).map((each) => each.toLowerCase());
  const ca = data?.["requestheader-client-ca-file"] ?? "";
  const usernameHeaders = lower("username-headers");
  if (ca === "" || usernameHeaders.length === 0) return undefined;
  return {
    ca,
    allowedNames: list("allowed-names"),
    usernameHeaders,
    uidHeaders: lower("uid-headers"),
    groupHeaders: lower("group-headers"),
    extraPrefixes: lower("extra-headers-prefix"),
  };
}

/** The user of a request that has come from the API server; undefined for one from elsewhere. The server has verified the certificate. */
export function frontProxyUser(proxy: FrontProxy, request: IncomingMessage): User | undefined {
  const { socket, headersDistinct: headers } = request;
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const { CN: name } = (socket.getPeerCertificate().subject ?? {}) as { CN?: string };
  if (proxy.allowedNames.length > 0 && !proxy.allowedNames.includes(name ?? "")) return undefined;
  const first = (names: readonly string[]) =>
    names.flatMap((each) => headers[each] ?? []).find((value) => value !== "");
  const username = first(proxy.usernameHeaders);
  if (username === undefined) return undefined;
  const groups = proxy.groupHeaders.flatMap((each) => headers[each] ?? []).map(decoded);
  const uid = first(proxy.uidHeaders);
  return {
    username: decoded(username),
    groups,
    ...(uid === undefined ? {} : { uid }),
    extra: extraOf(proxy, headers),
  };
}

function extraOf({ extraPrefixes }: FrontProxy, headers: NodeJS.Dict<string[]>) {
  const extra: Record<string, string[]> = {};
  for (const [name, values = []] of Object.entries(headers)) {
    const prefix = extraPrefixes.find((each) => name.startsWith(each));
    if (prefix === undefined) continue;
    extra[unescaped(name.slice(prefix.length))] = values.map(decoded);
  }
  return extra;
}

/** Headers are UTF-8 on the wire; Node.js reads a byte as a character. */
const decoded = (value: string): string => Buffer.from(value, "latin1").toString("utf8");

/** Names of headers are escaped as in URLs (`client-go/transport`, `headerKeyEscape`). */
function unescaped(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
