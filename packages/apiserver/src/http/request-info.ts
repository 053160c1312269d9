/** What a request's path addresses (Kubernetes API concepts, "Resource URIs"). */
export interface RequestInfo {
  /** Undefined when the path is of no resource: /version, discovery documents, ... */
  group?: string;
  version?: string;
  resource?: string;
  namespace?: string;
  name?: string;
  subresource?: string;
  /** Whether the path has `watch` before the resource: an old way of `?watch=true`. */
  watch?: boolean;
  /** Path segments after the subresource. */
  rest: string[];
}

/**
 * Reads `/api/v1/...` and `/apis/<group>/<version>/...`. Undefined when an escape in the path cannot
 * be decoded.
 */
export function requestInfoOf(pathname: string): RequestInfo | undefined {
  const parts = pathname.split("/").slice(1);
  if (parts.at(-1) === "") parts.pop();
  const named =
    parts[0] === "apis" ? parts.slice(1) : parts[0] === "api" ? ["", ...parts.slice(1)] : [];
  const [group, version, ...path] = named;
  if (group === undefined || version === undefined || path.length === 0) return { rest: [] };
  let decoded: string[];
  try {
    decoded = path.map(decodeURIComponent);
  } catch {
    return undefined;
  }
  if (decoded[0] === "watch" && decoded.length > 1) {
    return { ...resourceOf(group, version, decoded.slice(1)), watch: true };
  }
  return resourceOf(group, version, decoded);
}

function resourceOf(group: string, version: string, decoded: string[]): RequestInfo {
  // Below a namespace are resources, except for the namespace's own subresources.
  const ownSubresource = decoded.length === 3 && ["status", "finalize"].includes(decoded[2] ?? "");
  if (decoded[0] === "namespaces" && decoded.length >= 3 && !(group === "" && ownSubresource)) {
    const [, namespace = "", ...rest] = decoded;
    return { ...parsed(group, version, rest), namespace };
  }
  return parsed(group, version, decoded);
}

function parsed(group: string, version: string, path: string[]): RequestInfo {
  const [resource, name, subresource, ...rest] = path;
  return {
    group,
    version,
    rest,
    ...(resource !== undefined && { resource }),
    ...(name !== undefined && { name }),
    ...(subresource !== undefined && { subresource }),
  };
}
