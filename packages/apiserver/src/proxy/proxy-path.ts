/** Paths of requests that are proxied: `/api/v1/namespaces/NS/services/[SCHEME:]NAME[:PORT]/proxy/PATH`, pods and nodes alike. */
export interface ProxyPath {
  kind: "pods" | "services" | "nodes";
  /** Empty for nodes. */
  namespace: string;
  name: string;
  scheme: "http" | "https";
  /** Number or name; empty when the path has none. */
  port: string;
  /** Up to and with `/proxy`, as the client wrote it. */
  prefix: string;
  /** The path that the target is requested with, and its query; begins with a slash. */
  target: string;
}

const pattern =
  /^(?<prefix>\/api\/v1\/(?:namespaces\/(?<namespace>[^/?]+)\/(?<kind>pods|services)|(?<nodes>nodes))\/(?<id>[^/?]+)\/proxy)(?<path>\/[^?]*)?(?<query>\?.*)?$/s;

/** Whether the target of a request may be one of these. */
export function isProxyPath(url: string): boolean {
  return pattern.test(url);
}

/** Undefined when it is not such a path, or one whose parts cannot be read (`net.SplitSchemeNamePort`). */
export function proxyPathOf(url: string): ProxyPath | undefined {
  const {
    prefix = "",
    namespace = "",
    kind,
    id = "",
    path,
    query,
  } = pattern.exec(url)?.groups ?? {};
  const parts = decoded(id)?.split(":");
  const within = decoded(namespace);
  if (!parts || within === undefined || parts.length > 3) return undefined;
  const [scheme = "", name = "", port = ""] =
    parts.length === 3 ? parts : ["", parts[0] ?? "", parts[1] ?? ""];
  if (name === "" || !["", "http", "https"].includes(scheme)) return undefined;
  return {
    kind: kind === "pods" || kind === "services" ? kind : "nodes",
    namespace: within,
    name,
    scheme: scheme === "https" ? "https" : "http",
    port,
    prefix,
    target: `${path ?? "/"}${query ?? ""}`,
  };
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
